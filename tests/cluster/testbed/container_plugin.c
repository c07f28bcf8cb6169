/*
 * A stand-in for pyxis and enroot in one SPANK plugin, for tests only: it takes the --container-* options of
 * pyxis 0.24 and runs a task in a root folder of its own, with pyxis's messages and exit codes.
 *
 * How a step goes (the order is Slurm's):
 *   srun, sbatch, salloc   register the options, refuse a wrong grammar
 *   slurmstepd, as root    init_post_opt            read the options and PYXIS_CONTAINER_* of the job
 *   each task, as root     task_init_privileged     unpack the image once, make the mounts
 *   each task, as user     task_init                change the root, set the image's environment, go to the working folder
 *   slurmstepd, as root    task_exit of the last    save the container, remove it when it has no name
 *
 * What differs from pyxis: root makes the mounts (pyxis: a user namespace), an image may be a folder, and a
 * registry is a folder: <root>/images/registry, "/" in a name written as "+".
 *
 * Arguments in plugstack.conf:  root=FOLDER   the cluster's state folder
 * In slurmd's environment:      GEN_NODE      the node's name
 * An image may hold:            etc/environment  NAME=VALUE lines
 *                               .host-usr        a marker: /usr comes from the host, but for usr/local
 *
 * Faults, for tests of silent failures: words in <root>/faults, each also as WORD-NODE:
 *   launch    the plugin does not start on the node (the task is not launched, srun's exit code is 0)
 *   no-image  the image is not found on the node
 *   save      --container-save prints an error, saves nothing, exit code 0
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(container, 1)

enum { MAX_MOUNTS = 64, MAX_NAMES = 64, UNSET = -1 };

struct mount_entry {
	char *source, *target, *flags;
};

static struct {
	char *image, *workdir, *name, *name_flag, *save;
	struct mount_entry mounts[MAX_MOUNTS];
	int mount_count;
	char *env_names[MAX_NAMES];
	int env_count;
	int mount_home, remap_root, entrypoint, entrypoint_log, writable;
	int unshare_flags;
} options = {.mount_home = UNSET, .remap_root = UNSET, .entrypoint = UNSET, .entrypoint_log = UNSET, .writable = UNSET};

static struct {
	bool enabled;
	bool failed;
	char root[PATH_MAX]; /* the cluster's state folder */
	char node[64];
	uid_t uid;
	gid_t gid;
	uint32_t job_id, step_id, local_tasks, ended_tasks;
	_Atomic uint32_t *started_tasks; /* shared by slurmstepd and its tasks */
	char cwd[PATH_MAX], home[PATH_MAX];
	char script[PATH_MAX];          /* the batch script, when sbatch itself has an image */
	char data[PATH_MAX - 512];      /* this user's containers on this node */
	char container[300];            /* the container's name in that folder */
	char rootfs[PATH_MAX];
} step;

/* ---- options ------------------------------------------------------------------------------------------------ */

enum {
	IMAGE, MOUNTS, WORKDIR, NAME, SAVE, ENV, UNSHARE, MOUNT_HOME, NO_MOUNT_HOME, REMAP_ROOT, NO_REMAP_ROOT,
	ENTRYPOINT, NO_ENTRYPOINT, ENTRYPOINT_LOG, WRITABLE, READONLY,
};

static int set_once(char **place, const char *option, const char *value)
{
	/* Slurm calls twice with the same value. */
	if (*place != NULL && strcmp(*place, value) != 0) {
		slurm_error("pyxis: --container-%s specified multiple times", option);
		return -1;
	}
	if (*place == NULL)
		*place = strdup(value);
	return 0;
}

static int set_switch(int *place, int value, const char *on, const char *off)
{
	if (*place != UNSET && *place != value) {
		slurm_error("pyxis: both --%s and --%s were specified", on, off);
		return -1;
	}
	*place = value;
	return 0;
}

static int add_mount(const char *source, const char *target, const char *flags)
{
	if (strspn(source, "./") == 0 && strcmp(source, "tmpfs") != 0 && strcmp(source, "umount") != 0) {
		slurm_error("pyxis: mount source must be a relative path, an absolute path, \"tmpfs\" or \"umount\"");
		return -1;
	}
	if (strspn(target, "./") == 0) {
		slurm_error("pyxis: mount target must be a relative path or an absolute path");
		return -1;
	}
	for (int i = 0; i < options.mount_count; i++) {
		struct mount_entry *known = &options.mounts[i];
		if (strcmp(known->source, source) == 0 && strcmp(known->target, target) == 0 && strcmp(known->flags, flags) == 0)
			return 0;
	}
	if (options.mount_count == MAX_MOUNTS) {
		slurm_error("pyxis: more than %d mounts", MAX_MOUNTS);
		return -1;
	}
	options.mounts[options.mount_count++] = (struct mount_entry){strdup(source), strdup(target), strdup(flags)};
	return 0;
}

static int set_mounts(const char *value)
{
	char *copy = strdup(value), *rest = copy, *entry;
	int rc = 0;

	while (rc == 0 && (entry = strsep(&rest, ",")) != NULL) {
		char *shown = strdup(entry);
		char *source = strsep(&entry, ":");
		char *target = entry ? strsep(&entry, ":") : source;

		if (*source == '\0' || *target == '\0') {
			slurm_error("pyxis: --container-mounts: invalid format: %s", shown);
			rc = -1;
		} else if (add_mount(source, target, entry ? entry : "") != 0) {
			slurm_error("pyxis: could not add mount entry: %s:%s", source, target);
			rc = -1;
		}
		free(shown);
	}
	free(copy);
	return rc;
}

static int set_name(const char *value)
{
	char *copy = strdup(value), *flag = copy;
	char *name = strsep(&flag, ":");
	int rc = -1;

	if (flag == NULL || *flag == '\0')
		flag = "auto";
	if (*name == '\0')
		slurm_error("pyxis: --container-name: empty name");
	else if (strcmp(flag, "auto") != 0 && strcmp(flag, "create") != 0 && strcmp(flag, "exec") != 0 &&
		 strcmp(flag, "no_exec") != 0)
		slurm_error("pyxis: --container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\"");
	else
		rc = set_once(&options.name, "name", name) || set_once(&options.name_flag, "name", flag) ? -1 : 0;
	free(copy);
	return rc;
}

static int set_env_names(const char *value)
{
	char *rest = strdup(value), *name;

	while ((name = strsep(&rest, ",")) != NULL) {
		if (*name == '\0') {
			slurm_error("pyxis: --container-env: invalid format: %s", value);
			return -1;
		}
		if (options.env_count < MAX_NAMES)
			options.env_names[options.env_count++] = name;
	}
	return 0;
}

static int set_unshare(const char *value)
{
	char *rest = strdup(value), *name;

	while ((name = strsep(&rest, ",")) != NULL) {
		if (strcmp(name, "net") == 0)
			options.unshare_flags |= CLONE_NEWNET;
		else if (strcmp(name, "ipc") == 0)
			options.unshare_flags |= CLONE_NEWIPC;
		else if (strcmp(name, "uts") == 0)
			options.unshare_flags |= CLONE_NEWUTS;
		else {
			slurm_error("pyxis: --container-unshare: unknown namespace '%s'", name);
			return -1;
		}
	}
	return 0;
}

static struct spank_option option_table[];

static int set_option(int option, const char *value, int remote)
{
	(void)remote;
	if (option <= UNSHARE && (value == NULL || *value == '\0')) {
		slurm_error("pyxis: --%s: argument required", option_table[option].name);
		return -1;
	}
	switch (option) {
	case IMAGE:
		return set_once(&options.image, "image", value);
	case MOUNTS:
		return set_mounts(value);
	case WORKDIR:
		return set_once(&options.workdir, "workdir", value);
	case NAME:
		return set_name(value);
	case SAVE:
		if (value[strlen(value) - 1] == '/') {
			slurm_error("pyxis: --container-save: target is a directory");
			return -1;
		}
		return set_once(&options.save, "save", value);
	case ENV:
		return set_env_names(value);
	case UNSHARE:
		return set_unshare(value);
	case MOUNT_HOME:
	case NO_MOUNT_HOME:
		return set_switch(&options.mount_home, option == MOUNT_HOME, "container-mount-home", "no-container-mount-home");
	case REMAP_ROOT:
	case NO_REMAP_ROOT:
		return set_switch(&options.remap_root, option == REMAP_ROOT, "container-remap-root", "no-container-remap-root");
	case ENTRYPOINT:
	case NO_ENTRYPOINT:
		return set_switch(&options.entrypoint, option == ENTRYPOINT, "container-entrypoint", "no-container-entrypoint");
	case ENTRYPOINT_LOG:
		options.entrypoint_log = 1;
		return 0;
	case WRITABLE:
	case READONLY:
		return set_switch(&options.writable, option == WRITABLE, "container-writable", "container-readonly");
	}
	return -1;
}

static struct spank_option option_table[] = {
	{"container-image", "[REGISTRY#]IMAGE[:TAG]|PATH", "[pyxis] the image to use for the container filesystem", 1, IMAGE, set_option},
	{"container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]", "[pyxis] bind mount[s] inside the container", 1, MOUNTS, set_option},
	{"container-workdir", "PATH", "[pyxis] working directory inside the container", 1, WORKDIR, set_option},
	{"container-name", "NAME", "[pyxis] name to use for saving and loading the container on the host", 1, NAME, set_option},
	{"container-save", "PATH", "[pyxis] save the container state to a squashfs file", 1, SAVE, set_option},
	{"container-env", "NAME[,NAME...]", "[pyxis] variables whose host value wins over the image's", 1, ENV, set_option},
	{"container-unshare", "NS[,NS...]", "[pyxis] new namespaces for the container: net, ipc, uts", 1, UNSHARE, set_option},
	{"container-mount-home", NULL, "[pyxis] bind mount the user's home directory", 0, MOUNT_HOME, set_option},
	{"no-container-mount-home", NULL, "[pyxis] do not bind mount the user's home directory", 0, NO_MOUNT_HOME, set_option},
	{"container-remap-root", NULL, "[pyxis] ask to be remapped to root inside the container", 0, REMAP_ROOT, set_option},
	{"no-container-remap-root", NULL, "[pyxis] do not remap to root inside the container", 0, NO_REMAP_ROOT, set_option},
	{"container-entrypoint", NULL, "[pyxis] accepted; the images here have no entrypoint", 0, ENTRYPOINT, set_option},
	{"no-container-entrypoint", NULL, "[pyxis] accepted; the images here have no entrypoint", 0, NO_ENTRYPOINT, set_option},
	{"container-entrypoint-log", NULL, "[pyxis] accepted; the images here have no entrypoint", 0, ENTRYPOINT_LOG, set_option},
	{"container-writable", NULL, "[pyxis] make the container filesystem writable", 0, WRITABLE, set_option},
	{"container-readonly", NULL, "[pyxis] make the container filesystem read-only", 0, READONLY, set_option},
	SPANK_OPTIONS_TABLE_END,
};

static bool option_given(int option)
{
	switch (option) {
	case IMAGE: return options.image != NULL;
	case MOUNTS: return options.mount_count > 0;
	case WORKDIR: return options.workdir != NULL;
	case NAME: return options.name != NULL;
	case SAVE: return options.save != NULL;
	case ENV: return options.env_count > 0;
	case UNSHARE: return options.unshare_flags != 0;
	case MOUNT_HOME: return options.mount_home != UNSET;
	case REMAP_ROOT: return options.remap_root != UNSET;
	case ENTRYPOINT: return options.entrypoint != UNSET;
	case ENTRYPOINT_LOG: return options.entrypoint_log != UNSET;
	case WRITABLE: case READONLY: return options.writable != UNSET;
	default: return true; /* the no- forms have no variable of their own */
	}
}

/* PYXIS_CONTAINER_IMAGE and the like count where the command line says nothing. */
static void read_option_variables(spank_t sp)
{
	for (int i = 0; option_table[i].name != NULL; i++) {
		struct spank_option *option = &option_table[i];
		char variable[80] = "PYXIS_", buffer[PATH_MAX];
		const char *value;
		size_t length = strlen(variable);

		if (option_given(option->val))
			continue;
		for (const char *c = option->name; *c != '\0'; c++)
			variable[length++] = *c == '-' ? '_' : (char)toupper(*c);
		variable[length] = '\0';
		if (spank_context() == S_CTX_REMOTE)
			value = spank_getenv(sp, variable, buffer, sizeof(buffer)) == ESPANK_SUCCESS ? buffer : NULL;
		else
			value = getenv(variable);
		if (value == NULL)
			continue;
		if (option->has_arg)
			set_option(option->val, value, 0);
		else if (strchr("1ty", *value) != NULL && *value != '\0')
			set_option(option->val, NULL, 0);
		else if (strchr("0fn", *value) != NULL && *value != '\0' && option->val < ENTRYPOINT_LOG)
			set_option(option->val + 1, NULL, 0);
	}
}

static bool container_wanted(void)
{
	static const struct { int option; const char *shown; } ignored[] = {
		{MOUNTS, "--container-mounts"}, {WORKDIR, "--container-workdir"}, {SAVE, "--container-save"},
		{MOUNT_HOME, "--[no-]container-mount-home"}, {REMAP_ROOT, "--[no-]container-remap-root"},
		{ENTRYPOINT, "--[no-]container-entrypoint"}, {ENTRYPOINT_LOG, "--container-entrypoint-log"},
	};

	if (options.image != NULL || options.name != NULL)
		return true;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (option_given(ignored[i].option))
			slurm_error("pyxis: ignoring %s because neither --container-image nor --container-name is set", ignored[i].shown);
	if (options.writable != UNSET)
		slurm_error("pyxis: ignoring --container-%s because neither --container-image nor --container-name is set",
			    options.writable ? "writable" : "readonly");
	return false;
}

/* ---- small things ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int put(char *place, size_t size, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(place, size, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= size) {
		slurm_error("pyxis: path too long: %s", place);
		return -1;
	}
	return 0;
}

static bool fault_set(const char *word)
{
	char path[PATH_MAX], line[128], on_node[128];
	bool found = false;
	FILE *file;

	if (put(path, sizeof(path), "%s/faults", step.root) != 0 || (file = fopen(path, "re")) == NULL)
		return false;
	snprintf(on_node, sizeof(on_node), "%s-%s", word, step.node);
	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\r\n \t")] = '\0';
		found = found || strcmp(line, word) == 0 || strcmp(line, on_node) == 0;
	}
	fclose(file);
	return found;
}

/* What follows is done with the rights of the job's user, until as_root(). */
static void as_user(void)
{
	setfsgid(step.gid);
	setfsuid(step.uid);
}

static void as_root(void)
{
	setfsuid(0);
	setfsgid(0);
}

/* Runs a program on the host, as the job's user or as root; its own talk goes to slurmd's log. */
static int run_program(bool user, char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		umask(022);
		if (user && (setgroups(0, NULL) != 0 || setgid(step.gid) != 0 || setuid(step.uid) != 0))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

__attribute__((format(printf, 1, 2))) static int enroot_error(const char *format, ...)
{
	char text[2 * PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	slurm_error("pyxis: printing enroot log file:");
	slurm_error("pyxis:     [ERROR] %s", text);
	return -1;
}

/* ---- the image and the container's root folder -------------------------------------------------------------- */

static void image_failed(const char *what, const char *image)
{
	slurm_error("pyxis: child %d failed with error code: 1", getpid());
	slurm_error("pyxis: %s: %s", what, image);
}

/* "docker://host#ns/img:tag" -> <root>/images/registry/host+ns+img:tag.sqsh, or without .sqsh where that is a folder. */
static int find_in_registry(const char *image, char *path, size_t size)
{
	char reference[PATH_MAX], *c, *tag;
	struct stat info;

	slurm_spank_log("pyxis: importing docker image: %s", image);
	if (strncmp(image, "docker://", 9) == 0)
		image += 9;
	if (put(reference, sizeof(reference), "%s", image) != 0)
		return -1;
	for (c = reference; *c != '\0' && *c != ':'; c++) {
		if (isupper((unsigned char)*c)) {
			image_failed("failed to import docker image", image);
			return enroot_error("Invalid image reference: docker://%s", image);
		}
	}
	if ((c = strchr(reference, '#')) != NULL)
		*c = '/';
	if (strrchr(reference, ':') == NULL || strchr(strrchr(reference, ':'), '/') != NULL)
		strncat(reference, ":latest", sizeof(reference) - strlen(reference) - 1);
	if (put(path, size, "%s/images/registry/", step.root) != 0)
		return -1;
	for (c = reference; *c != '\0'; c++) {
		char letter[2] = {*c == '/' ? '+' : *c, '\0'};
		strncat(path, letter, size - strlen(path) - 1);
	}
	if (!fault_set("no-image")) {
		if (stat(path, &info) == 0)
			return 0;
		strncat(path, ".sqsh", size - strlen(path) - 1);
		if (stat(path, &info) == 0)
			return 0;
	}
	image_failed("failed to import docker image", image);
	tag = strrchr(reference, ':');
	*tag++ = '\0';
	c = strchr(reference, '/');
	if (c != NULL)
		*c++ = '\0';
	return enroot_error("URL https://%s/v2/%s/manifests/%s returned error code: 404 Not Found",
			    c ? reference : "registry-1.docker.io", c ? c : reference, tag);
}

static int find_image(char *path, size_t size, bool *folder)
{
	char magic[4] = "";
	struct stat info;
	ssize_t length;
	int fd;

	if (strspn(options.image, "./") == 0) {
		if (find_in_registry(options.image, path, size) != 0)
			return -1;
	} else if (put(path, size, "%s%s%s", *options.image == '/' ? "" : step.cwd, *options.image == '/' ? "" : "/", options.image) != 0) {
		return -1;
	}
	as_user();
	fd = fault_set("no-image") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	as_root();
	if (fd < 0 || fstat(fd, &info) != 0) {
		image_failed("failed to create container filesystem for image", options.image);
		return enroot_error("No such file or directory: %s", path);
	}
	*folder = S_ISDIR(info.st_mode);
	length = *folder ? 0 : read(fd, magic, sizeof(magic));
	close(fd);
	if (!*folder && (length != sizeof(magic) || memcmp(magic, "hsqs", sizeof(magic)) != 0)) {
		image_failed("failed to create container filesystem for image", options.image);
		return enroot_error("Invalid image format: %s", path);
	}
	return 0;
}

static int unpack_image(void)
{
	char image[PATH_MAX], unfinished[PATH_MAX + 8];
	bool folder;
	int rc;

	if (find_image(image, sizeof(image), &folder) != 0)
		return -1;
	snprintf(unfinished, sizeof(unfinished), "%s.part", step.rootfs);
	run_program(false, (char *const[]){"/bin/rm", "-rf", "--one-file-system", "--", unfinished, NULL});
	if (folder)
		rc = run_program(true, (char *const[]){"/bin/cp", "-R", "-P", "--preserve=mode,timestamps,links", "--", image, unfinished, NULL});
	else
		rc = run_program(true, (char *const[]){"/usr/bin/unsquashfs", "-no-progress", "-no-xattrs", "-dest", unfinished, image, NULL});
	if (rc != 0 || rename(unfinished, step.rootfs) != 0) {
		image_failed("failed to create container filesystem for image", options.image);
		return enroot_error("Failed to extract %s (exit code %d)", image, rc);
	}
	return 0;
}

/* The tasks of a step come here at the same time: the first to hold the lock unpacks, the others find it done. */
static int ensure_rootfs(void)
{
	char lock_path[PATH_MAX + 8];
	struct stat info;
	int lock, rc = 0;

	snprintf(lock_path, sizeof(lock_path), "%s.lock", step.rootfs);
	lock = open(lock_path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) != 0) {
		slurm_error("pyxis: failed to acquire container setup lock: %s: %s", lock_path, strerror(errno));
		return -1;
	}
	if (stat(step.rootfs, &info) != 0) {
		if (options.image == NULL) {
			slurm_error("pyxis: error: a container with name \"%s\" does not exist, and --container-image is not set", step.container);
			rc = -1;
		} else {
			rc = unpack_image();
		}
	}
	close(lock);
	return rc;
}

/* ---- mounts ------------------------------------------------------------------------------------------------- */

/* Opens a path as seen from within the container: an absolute link stays inside the root folder. */
static int open_inside(int root, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Opens a mount target, and makes it and the folders above it where they are missing. */
static int open_target(int root, const char *path, bool folder)
{
	char part[PATH_MAX], *slash;
	int parent, target = open_inside(root, path);

	if (target >= 0 || errno != ENOENT)
		return target;
	snprintf(part, sizeof(part), "%s", path);
	while (strlen(part) > 1 && part[strlen(part) - 1] == '/')
		part[strlen(part) - 1] = '\0';
	slash = strrchr(part, '/');
	if (slash == NULL) {
		parent = open_inside(root, "/");
		slash = part - 1;
	} else {
		*slash = '\0';
		parent = open_target(root, slash == part ? "/" : part, true);
	}
	if (parent < 0)
		return -1;
	if (folder) {
		if (mkdirat(parent, slash + 1, 0755) != 0 && errno != EEXIST)
			target = -errno;
	} else {
		int file = openat(parent, slash + 1, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (file < 0)
			target = -errno;
		else
			close(file);
	}
	close(parent);
	if (target < -1) {
		errno = -target;
		return -1;
	}
	return open_inside(root, path);
}

static int mount_failed(const char *source, const char *target)
{
	int error = errno;

	slurm_error("pyxis: container start failed with error code: 1");
	slurm_error("pyxis: printing enroot log file:");
	slurm_error("pyxis:     enroot-mount: failed to mount: %s at %s%s: %s", source, step.rootfs, target, strerror(error));
	return -1;
}

/* Binds one path of the host into the container; creates the target with the user's rights. */
static int bind_path(int root, const char *source, const char *target, bool read_only)
{
	char from[64], to[64];
	struct stat info;
	int source_fd, target_fd = -1, inside = -1, rc = -1;

	as_user();
	source_fd = open(source, O_PATH | O_CLOEXEC);
	if (source_fd >= 0 && fstat(source_fd, &info) == 0)
		target_fd = open_target(root, target, S_ISDIR(info.st_mode));
	as_root();
	if (target_fd >= 0) {
		snprintf(from, sizeof(from), "/proc/self/fd/%d", source_fd);
		snprintf(to, sizeof(to), "/proc/self/fd/%d", target_fd);
		rc = mount(from, to, NULL, MS_BIND | MS_REC, NULL);
	}
	if (rc == 0 && read_only) {
		/* The target's descriptor is of what lies under the mount: open it again. */
		inside = open_inside(root, target);
		snprintf(to, sizeof(to), "/proc/self/fd/%d", inside);
		rc = mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
	}
	if (rc != 0)
		mount_failed(source, target);
	if (source_fd >= 0)
		close(source_fd);
	if (target_fd >= 0)
		close(target_fd);
	if (inside >= 0)
		close(inside);
	return rc;
}

static int mount_tmpfs(int root, const char *target, const char *mode)
{
	char to[64], data[128];
	int fd, rc;

	as_user();
	fd = open_target(root, target, true);
	as_root();
	snprintf(to, sizeof(to), "/proc/self/fd/%d", fd);
	snprintf(data, sizeof(data), "mode=%s,uid=%u,gid=%u", mode, step.uid, step.gid);
	rc = fd < 0 ? -1 : mount("tmpfs", to, "tmpfs", MS_NOSUID | MS_NODEV, data);
	if (rc != 0)
		mount_failed("tmpfs", target);
	if (fd >= 0)
		close(fd);
	return rc;
}

static bool flag_set(const char *flags, const char *wanted)
{
	char *copy = strdup(flags), *rest = copy, *flag;
	bool found = false;

	while ((flag = strsep(&rest, "+,")) != NULL)
		found = found || strcmp(flag, wanted) == 0;
	free(copy);
	return found;
}

static int mount_entry(int root, const struct mount_entry *entry)
{
	char source[2 * PATH_MAX], to[64];
	struct stat info;

	if (strcmp(entry->source, "tmpfs") == 0)
		return mount_tmpfs(root, entry->target, "1777");
	if (strcmp(entry->source, "umount") == 0) {
		int fd = open_inside(root, entry->target);
		int rc;

		snprintf(to, sizeof(to), "/proc/self/fd/%d", fd);
		rc = fd < 0 ? 0 : umount2(to, MNT_DETACH);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	snprintf(source, sizeof(source), "%s%s%s", *entry->source == '/' ? "" : step.cwd, *entry->source == '/' ? "" : "/", entry->source);
	if (stat(source, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
		slurm_error("pyxis: --container-mounts: source path does not exist: %s", entry->source);
		slurm_error("pyxis: couldn't create enroot start configuration script");
		return -1;
	}
	return bind_path(root, source, entry->target, flag_set(entry->flags, "ro"));
}

/* Gives an image that has the marker .host-usr the programs of the host; usr/local stays the image's own. */
static int mount_host_usr(int root)
{
	static const char *const hidden[] = {
		"/usr/bin/srun", "/usr/bin/sbatch", "/usr/bin/salloc", "/usr/bin/squeue",
		"/usr/bin/sacct", "/usr/bin/scancel", "/usr/bin/sinfo", "/usr/bin/scontrol",
	};
	struct dirent *entry;
	DIR *folder;
	int rc = 0;

	if (faccessat(root, ".host-usr", F_OK, 0) != 0)
		return 0;
	folder = opendir("/usr");
	while (folder != NULL && rc == 0 && (entry = readdir(folder)) != NULL) {
		char path[PATH_MAX];

		if (*entry->d_name == '.' || strcmp(entry->d_name, "local") == 0)
			continue;
		snprintf(path, sizeof(path), "/usr/%s", entry->d_name);
		rc = bind_path(root, path, path, true);
	}
	if (folder != NULL)
		closedir(folder);
	/* An image has no Slurm: a command of it that is called inside fails. */
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && rc == 0; i++)
		if (access(hidden[i], F_OK) == 0)
			rc = bind_path(root, "/dev/null", hidden[i], false);
	return rc;
}

static int mount_system(int root)
{
	static const char *const folders[] = {"/proc", "/sys", "/dev"};
	static const char *const files[] = {"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (bind_path(root, folders[i], folders[i], false) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (access(files[i], R_OK) == 0 && bind_path(root, files[i], files[i], true) != 0)
			return -1;
	return mount_tmpfs(root, "/tmp", "1777") || mount_tmpfs(root, "/run", "0755") ? -1 : 0;
}

static int mount_all(int root)
{
	char pmix[PATH_MAX];

	if (mount_host_usr(root) != 0 || mount_system(root) != 0)
		return -1;
	if (options.mount_home == 1 && bind_path(root, step.home, step.home, false) != 0)
		return -1;
	if (put(pmix, sizeof(pmix), "%s/state/slurmd.%s/pmix.%u.%u", step.root, step.node, step.job_id, step.step_id) != 0)
		return -1;
	if (access(pmix, F_OK) == 0 && bind_path(root, pmix, pmix, false) != 0)
		return -1;
	if (*step.script != '\0' && bind_path(root, step.script, step.script, true) != 0)
		return -1;
	for (int i = 0; i < options.mount_count; i++)
		if (mount_entry(root, &options.mounts[i]) != 0)
			return -1;
	return 0;
}

static int mount_container(void)
{
	int root;

	if (unshare(CLONE_NEWNS | options.unshare_flags) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    mount(step.rootfs, step.rootfs, NULL, MS_BIND, NULL) != 0)
		return mount_failed(step.rootfs, "/");
	root = open(step.rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || mount_all(root) != 0)
		return -1;
	if (options.writable != 1 && mount(NULL, step.rootfs, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
		return mount_failed(step.rootfs, "/");
	/* Slurm goes to the job's working folder before task_init: the root changes after that, and needs root's rights. */
	if (prctl(PR_SET_KEEPCAPS, 1) != 0)
		return mount_failed(step.rootfs, "/");
	close(root);
	return 0;
}

static int set_capabilities(bool all)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		data[i].effective = all ? data[i].permitted : 0;
		data[i].permitted = data[i].effective;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &header, data);
}

static int change_root(void)
{
	if (set_capabilities(true) != 0 || chdir(step.rootfs) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
	    umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		return mount_failed(step.rootfs, "/");
	return set_capabilities(false);
}

/* ---- environment and user, inside --------------------------------------------------------------------------- */

static bool keeps_host_value(const char *name)
{
	for (int i = 0; i < options.env_count; i++)
		if (strcmp(options.env_names[i], name) == 0)
			return true;
	return false;
}

static void set_environment(spank_t sp)
{
	static const char *const locale[] = {"LANG", "LANGUAGE", "LC_ALL"};
	FILE *file = fopen("/etc/environment", "re");
	char line[4096];

	for (size_t i = 0; i < sizeof(locale) / sizeof(locale[0]); i++)
		if (!keeps_host_value(locale[i]))
			spank_unsetenv(sp, locale[i]);
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *value = strchr(line, '=');

		line[strcspn(line, "\n")] = '\0';
		if (value == NULL || *line == '#')
			continue;
		*value++ = '\0';
		spank_setenv(sp, line, value, !keeps_host_value(line));
	}
	if (file != NULL)
		fclose(file);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return length == (ssize_t)strlen(text) ? 0 : -1;
}

static int remap_to_root(void)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "0 %u 1\n", step.uid);
	snprintf(groups, sizeof(groups), "0 %u 1\n", step.gid);
	/* The files below belong to the user only while the process counts as dumpable. */
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER) != 0 || write_file("/proc/self/setgroups", "deny") != 0 ||
	    write_file("/proc/self/uid_map", users) != 0 || write_file("/proc/self/gid_map", groups) != 0) {
		slurm_error("pyxis: couldn't join user namespace: %s", strerror(errno));
		return -1;
	}
	return 0;
}

/* ---- the end of a step -------------------------------------------------------------------------------------- */

static int save_container(void)
{
	char path[2 * PATH_MAX], unfinished[2 * PATH_MAX + 8];
	int rc = -1;

	snprintf(path, sizeof(path), "%s%s%s", *options.save == '/' ? "" : step.cwd, *options.save == '/' ? "" : "/", options.save);
	snprintf(unfinished, sizeof(unfinished), "%s.part", path);
	if (!fault_set("save"))
		rc = run_program(true, (char *const[]){"/usr/bin/mksquashfs", step.rootfs, unfinished, "-noappend", "-no-progress",
						       "-all-root", "-no-xattrs", NULL});
	if (rc == 0) {
		as_user();
		rc = rename(unfinished, path);
		as_root();
	}
	if (rc != 0) {
		enroot_error("No such file or directory: %s", path);
		slurm_error("pyxis: failed to export container %s to %s", step.container, options.save);
		return -1;
	}
	slurm_spank_log("pyxis: exported container %s to %s", step.container, options.save);
	return 0;
}

static void remove_container(void)
{
	char lock_path[PATH_MAX + 8];

	run_program(false, (char *const[]){"/bin/rm", "-rf", "--one-file-system", "--", step.rootfs, NULL});
	snprintf(lock_path, sizeof(lock_path), "%s.lock", step.rootfs);
	unlink(lock_path);
}

/* ---- what Slurm calls --------------------------------------------------------------------------------------- */

int slurm_spank_init(spank_t sp, int count, char **arguments)
{
	spank_context_t context = spank_context();

	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return 0;
	for (int i = 0; i < count; i++)
		if (strncmp(arguments[i], "root=", 5) == 0)
			snprintf(step.root, sizeof(step.root), "%s", arguments[i] + 5);
	for (int i = 0; option_table[i].name != NULL; i++)
		if (spank_option_register(sp, &option_table[i]) != ESPANK_SUCCESS) {
			slurm_error("pyxis: couldn't register option %s", option_table[i].name);
			return -1;
		}
	return 0;
}

static int read_step(spank_t sp)
{
	const char *node = getenv("GEN_NODE");
	struct passwd *user;

	if (node == NULL || *step.root == '\0') {
		slurm_error("pyxis: GEN_NODE is not set for slurmd, or root= is missing in plugstack.conf");
		return -1;
	}
	snprintf(step.node, sizeof(step.node), "%s", node);
	if (spank_get_item(sp, S_JOB_UID, &step.uid) != ESPANK_SUCCESS || spank_get_item(sp, S_JOB_GID, &step.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_ID, &step.job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step.step_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &step.local_tasks) != ESPANK_SUCCESS) {
		slurm_error("pyxis: couldn't get the step's description");
		return -1;
	}
	if (spank_getenv(sp, "PWD", step.cwd, sizeof(step.cwd)) != ESPANK_SUCCESS)
		snprintf(step.cwd, sizeof(step.cwd), "/");
	user = getpwuid(step.uid);
	snprintf(step.home, sizeof(step.home), "%s", user ? user->pw_dir : "/");
	return 0;
}

/* Where this user's containers on this node are. */
static int make_data_folder(void)
{
	if (put(step.data, sizeof(step.data), "%s/nodes/%s/containers/%u", step.root, step.node, step.uid) != 0)
		return -1;
	if ((mkdir(step.data, 0700) == 0 && chown(step.data, step.uid, step.gid) != 0) || access(step.data, W_OK) != 0) {
		slurm_error("pyxis: couldn't mkdir %s: %s", step.data, strerror(errno));
		return -1;
	}
	return 0;
}

/* enroot's list of containers is cut at spaces: one with a space in its name breaks them all. */
static bool names_are_sound(void)
{
	struct dirent *entry;
	bool sound = true;
	DIR *folder = opendir(step.data);

	while (folder != NULL && (entry = readdir(folder)) != NULL)
		sound = sound && strchr(entry->d_name, ' ') == NULL;
	if (folder != NULL)
		closedir(folder);
	return sound;
}

static int name_container(void)
{
	struct stat info;
	bool exists;
	int rc;

	if (options.name != NULL && !names_are_sound()) {
		slurm_error("pyxis: couldn't get list of containers");
		return -1;
	}
	if (options.name != NULL)
		rc = put(step.container, sizeof(step.container), "pyxis_%s", options.name);
	else
		rc = put(step.container, sizeof(step.container), "pyxis_%u.%u", step.job_id, step.step_id);
	if (rc != 0 || put(step.rootfs, sizeof(step.rootfs), "%s/%s", step.data, step.container) != 0)
		return -1;
	if (strchr(step.container, '/') != NULL)
		return enroot_error("Invalid argument: %s", step.container);
	exists = stat(step.rootfs, &info) == 0;
	if (options.name_flag != NULL && strcmp(options.name_flag, "create") == 0 && exists) {
		slurm_error("pyxis: error: \"create\" flag was passed to --container-name but the container already exists");
		return -1;
	}
	if (options.name_flag != NULL && strcmp(options.name_flag, "exec") == 0 && !exists) {
		slurm_error("pyxis: error: \"exec\" flag was passed to --container-name but the container is not running");
		return -1;
	}
	return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int count, char **arguments)
{
	(void)count, (void)arguments;
	read_option_variables(sp);
	if (!container_wanted() || spank_context() != S_CTX_REMOTE)
		return 0;
	if (read_step(sp) != 0 || make_data_folder() != 0)
		return -1;
	if (fault_set("launch")) {
		slurm_error("pyxis: couldn't mkdir /run/pyxis/%u: No such file or directory", step.uid);
		return -1;
	}
	step.started_tasks = mmap(NULL, sizeof(*step.started_tasks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (step.started_tasks == MAP_FAILED)
		return -1;
	step.enabled = true;
	return 0;
}

int slurm_spank_user_init(spank_t sp, int count, char **arguments)
{
	char **argv = NULL;
	int argc = 0;

	(void)count, (void)arguments;
	if (!step.enabled)
		return 0;
	if (step.step_id == SLURM_BATCH_SCRIPT && spank_get_item(sp, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0)
		snprintf(step.script, sizeof(step.script), "%s", argv[0]);
	/* A failure returned from here would have srun exit with 0: the tasks return it. */
	step.failed = name_container() != 0;
	return 0;
}

int slurm_spank_task_init_privileged(spank_t sp, int count, char **arguments)
{
	(void)sp, (void)count, (void)arguments;
	if (step.enabled && !step.failed && ensure_rootfs() != 0) {
		step.failed = true;
	} else if (step.enabled && !step.failed && mount_container() != 0) {
		slurm_error("pyxis: container was not started successfully by another task");
		step.failed = true;
	}
	return 0;
}

int slurm_spank_task_init(spank_t sp, int count, char **arguments)
{
	const char *folder = options.workdir ? options.workdir : "/";

	(void)count, (void)arguments;
	if (!step.enabled)
		return 0;
	if (step.failed || change_root() != 0)
		return -1;
	set_environment(sp);
	if (options.remap_root == 1 && remap_to_root() != 0)
		return -1;
	if (chdir(folder) != 0) {
		slurm_error("pyxis: couldn't chdir to %s: %s", folder, strerror(errno));
		return -1;
	}
	++*step.started_tasks;
	return 0;
}

int slurm_spank_task_exit(spank_t sp, int count, char **arguments)
{
	int rc = 0;

	(void)sp, (void)count, (void)arguments;
	if (!step.enabled || ++step.ended_tasks != step.local_tasks)
		return 0;
	if (options.save != NULL && *step.started_tasks == step.local_tasks)
		rc = save_container();
	if (options.name == NULL)
		remove_container();
	return rc;
}
