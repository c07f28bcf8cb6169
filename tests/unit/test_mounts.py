import pytest

from slurm_bundle.mounts import Mount, mount_remarks, parse_mount


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/data", Mount("/data", "/data")),
        ("/data:/d", Mount("/data", "/d")),
        ("/data:/d:ro", Mount("/data", "/d", ("ro",))),
        ("/tmp:/x:ro+nosuid", Mount("/tmp", "/x", ("ro", "nosuid"))),
        ("./d:/d", Mount("./d", "/d")),
        ("~/d:/d:ro+rprivate", Mount("~/d", "/d", ("ro", "rprivate"))),
        ("~/d", Mount("~/d", "~/d")),
        ("~:/home", Mount("~", "/home")),
        ("tmpfs:/x", Mount("tmpfs", "/x")),
        ("/d:/d:x-create=dir+bind+ro", Mount("/d", "/d", ("x-create=dir", "bind", "ro"))),
        ("/a b:/c d", Mount("/a b", "/c d")),
        ("/caf\u00e9:/c", Mount("/caf\u00e9", "/c")),
        ("/it's #1 \\ (a) 100%:/c", Mount("/it's #1 \\ (a) 100%", "/c")),
        ("/d:/d:rw", Mount("/d", "/d", ("rw",))),
        ("/d:/d:rslave+noexec+nodev+nofail", Mount("/d", "/d", ("rslave", "noexec", "nodev", "nofail"))),
        ("tmpfs:/x:size=1G+mode=1777", Mount("tmpfs", "/x", ("size=1G", "mode=1777"))),
        ("umount:/x", Mount("umount", "/x")),
    ],
)
def test_a_mount_is_read_into_its_parts(text: str, mount: Mount) -> None:
    assert parse_mount(text) == mount


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("/tmp:/x:ro,nosuid", "write '/tmp:/x:ro+nosuid'"),
        ("$HOME/d:/d", "write ~/"),
        ("data:/d", "write ./data"),
        ("../data:/d", "source is relative"),
        ("~someone/d:/d", "write the full path"),
        ("/a,b:/d", "cannot be escaped"),
        ("/tmp:rel", "full path inside the container"),
        ("/a:b:/d", "target 'b' is not absolute"),
        ("/a:/b:/d:ro", "more than two colons"),
        ("/tmp: /x", "space at the edge of the target"),
        (" /tmp:/x", "space at the edge of the source"),
        ("", "is empty"),
        (":", "has no source"),
        ("/tmp:", "has no target"),
        ("./d", "write ./d:/path/inside"),
        ("tmpfs", "has no target"),
        *((f"/a:/b:{flag}", "pyxis ignores the flag") for flag in ("RO", "Ro", "readonly", "read-only", "ReadOnly")),
        ("/a:/b:RO", "write ro"),
        ("/a:/b:readonly", "write ro"),
        ("/a:/b:nosuid+RO", "write ro"),
        ("/a:/b:RW", "write rw"),
        *(
            (f"/a:/b:{flag}", "give ro or rw")
            for flag in ("bogus", "z", "cached", "r", "ro nosuid", " ro", "ro+", "+ro")
        ),
        *((f"/a:/b:{flag}", "give ro or rw") for flag in ("x-move", "x-detach", "remount", "size=x", "mode=9", "ro=1")),
        ("/a:/b:ro+rw", "both ro and rw"),
        ("nosuid", "a flag of the mount before it"),
        ("/a:/b:", "give ro or rw"),
        ('/a":/b', "mount a path without it"),
        ("/a`id`:/b", "mount a path without it"),
        ("/a\n:/b", "control character"),
    ],
)
def test_what_pyxis_refuses_or_ignores_is_refused_with_the_way_out(text: str, way_out: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the text is looked at below
        parse_mount(text)
    assert way_out in str(refusal.value)


def test_a_space_in_a_path_gets_a_remark() -> None:
    assert "2026-04" in mount_remarks(parse_mount("/a b:/c"))[0]
    assert mount_remarks(parse_mount("/a:/c")) == ()


@pytest.mark.parametrize("text", ["/a:/b", "/a:/b:ro+nosuid", "~/a:/b"])
def test_a_mount_is_written_as_it_was_read(text: str) -> None:
    assert str(parse_mount(text)) == text
