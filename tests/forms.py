"""Tables that a unit test and a test on the real cluster share: what a user may write, and what it has to mean."""

# Time limit as a user may write it -> the form that sbatch is given.
WALLTIMES = (
    ("30", "00:30:00"),
    ("90", "01:30:00"),
    ("3600", "2-12:00:00"),
    ("4:00", "00:04:00"),
    ("24:00", "00:24:00"),
    ("01:00", "00:01:00"),
    ("08:09", "00:08:09"),
    ("0:30", "00:00:30"),
    ("0:90", "00:01:30"),
    ("0:00:01", "00:00:01"),
    ("1:30:00", "01:30:00"),
    ("90:00:00", "3-18:00:00"),
    ("23:59:59", "23:59:59"),
    ("1:99:99", "02:40:39"),
    ("1-12", "1-12:00:00"),
    ("2-12:30", "2-12:30:00"),
    ("3-0:00", "3-00:00:00"),
    ("1-24", "2-00:00:00"),
    ("1-02:03:04", "1-02:03:04"),
    ("365-00:00:00", "365-00:00:00"),
    ("24855-03:13:08", "24855-03:13:08"),
    ("2h", "02:00:00"),
    ("90m", "01:30:00"),
    ("90M", "01:30:00"),
    ("1d", "1-00:00:00"),
    ("1d12h", "1-12:00:00"),
    ("3600s", "01:00:00"),
    *((word, "UNLIMITED") for word in ("UNLIMITED", "Unlimited", "INFINITE", "infinite", "0", "-1")),
    *((zero, "UNLIMITED") for zero in ("0:00", "0:00:00", "0-0", "0h")),
)

# Names of jobs that Slurm carries as they are: through the directive, squeue, sacct, and a log name with %x.
JOB_NAMES = (
    *("a", "Big simulation", "a  b", "50%run", "%x", "%%x", "%j_%u", "100%%", "a,b", "a=b", "a:b", "a+b@c", ".hidden"),
    *("a|b", "a&b*c", "(a)", "[1-3]", "=", "_-.", "null", "None", "x" * 200),
)
