package darwin

// What programs need of the system besides files. A row is an operation, a
// filter, why it is there, and where that is known from. Everything that is not
// here is refused: the keychain, the pasteboard, windows, launch services, Apple
// events, jobs of launchd, preferences of other programs, cameras and so on.
type serviceRow struct {
	ops    string
	filter string
	why    string
	source string // for whoever changes the row; not in the text
}

// always is granted to every program.
var always = []section{
	{"Terminals of one's own, semaphores, shared memory.", []serviceRow{
		{"pseudo-tty", "", "script, expect, editors", "openpty(3)"},
		{"ipc-posix-sem", "", "multiprocessing of Python", "sem_open(2)"},
		{"ipc-posix-shm-read*", `(ipc-posix-name "apple.shm.notification_center")`, "notify(3) in libc", "system.sb of macOS"},
		{"ipc-posix-shm-read*", `(ipc-posix-name-prefix "apple.cfprefs.")`, "settings of CoreFoundation", "system.sb of macOS"},
		{"ipc-posix-shm-read* ipc-posix-shm-write*", `(ipc-posix-name-prefix "/__KMP_REGISTERED_LIB_")`, "OpenMP: numpy, torch", "openmp/runtime/src/z_Linux_util.cpp"},
		{"ipc-posix-shm-read* ipc-posix-shm-write*", `(ipc-posix-name-prefix "/psm_")`, "shared_memory of Python", "Lib/multiprocessing/shared_memory.py"},
	}},
	{"Facts about the machine, by name: kern.procargs2 would show the variables of other programs.", []serviceRow{
		{"sysctl-read", `(sysctl-name-prefix "hw.optional.")`, "what the processor can do", "sysctl(3)"},
		{"sysctl-read", `(sysctl-name-prefix "hw.perflevel")`, "kinds of cores", "sysctl(3)"},
		{"sysctl-read", `(sysctl-name-prefix "machdep.cpu.")`, "what the processor can do", "sysctl(3)"},
		{"sysctl-write", `(sysctl-name "kern.grade_cputype")`, "Java asks by writing", "posix_spawn of libsystem"},
		{"sysctl-write", `(sysctl-name "kern.tcsm_enable")`, "V8 guards itself", "V8, platform-darwin"},
	}},
	{"Services of the system, each by name: others run code outside, or hand out keys.", []serviceRow{
		{"mach-lookup", `(global-name "com.apple.system.opendirectoryd.libinfo")`, "getpwuid(3), getgrnam(3)", "crbug.com/792228"},
		{"mach-lookup", `(global-name "com.apple.system.opendirectoryd.membership")`, "id(1), groups", "opendirectoryd(8)"},
		{"mach-lookup", `(global-name "com.apple.system.notification_center")`, "notify(3) in libc", "notifyd(8)"},
		{"mach-lookup", `(global-name "com.apple.system.logger")`, "syslog(3)", "syslogd(8)"},
		{"mach-lookup", `(global-name "com.apple.logd")`, "os_log(3)", "logd(8)"},
		{"mach-lookup", `(global-name "com.apple.bsd.dirhelper")`, "confstr(3) of temporary directories", "dirhelper(8)"},
		{"mach-lookup", `(global-name "com.apple.cfprefsd.daemon")`, "settings of CoreFoundation", "cfprefsd(8)"},
		{"mach-lookup", `(global-name "com.apple.cfprefsd.agent")`, "settings of CoreFoundation", "cfprefsd(8)"},
		{"mach-lookup", `(global-name "com.apple.FSEvents")`, "watchers of files", "fseventsd(8)"},
		{"user-preference-read", `(preference-domain "kCFPreferencesAnyApplication")`, "language and region", "CFPreferences"},
	}},
}

// sysctlRows are the facts about the machine that libc, Go, Node, Java and
// builds ask for: those of Chromium and Codex, with what sysctl(3) documents of
// processors and memory. None names a process.
var sysctlRows = []string{
	"hw.activecpu", "hw.byteorder", "hw.cacheconfig", "hw.cachelinesize", "hw.cachelinesize_compat", "hw.cachesize",
	"hw.cpufamily", "hw.cpufrequency", "hw.cpufrequency_compat", "hw.cpusubfamily", "hw.cpusubtype", "hw.cputype",
	"hw.cpu64bit_capable", "hw.l1dcachesize", "hw.l1dcachesize_compat", "hw.l1icachesize", "hw.l1icachesize_compat",
	"hw.l2cachesize", "hw.l2cachesize_compat", "hw.l3cachesize", "hw.l3cachesize_compat", "hw.logicalcpu",
	"hw.logicalcpu_max", "hw.machine", "hw.memsize", "hw.model", "hw.ncpu", "hw.nperflevels", "hw.packages",
	"hw.pagesize", "hw.pagesize_compat", "hw.physicalcpu", "hw.physicalcpu_max", "hw.targettype", "hw.tbfrequency",
	"hw.tbfrequency_compat", "hw.vectorunit", "kern.argmax", "kern.boottime", "kern.hostname", "kern.iossupportversion",
	"kern.maxfilesperproc", "kern.maxproc", "kern.ngroups", "kern.osproductversion", "kern.osproductversioncompat",
	"kern.osrelease", "kern.osrevision", "kern.ostype", "kern.osvariant_status", "kern.osversion", "kern.secure_kernel",
	"kern.usrstack64", "kern.version", "kern.willshutdown", "machdep.cpu.brand_string",
	"security.mac.lockdown_mode_state", "sysctl.proc_cputype", "sysctl.proc_native", "sysctl.proc_translated",
	"vm.loadavg", "vm.swapusage",
}

// online is granted besides where the host's network is.
var online = []section{
	{"", []serviceRow{
		{"network-outbound", `(remote ip "*:*")`, "connect", "sandbox of Chromium, network.sb"},
		{"network-inbound", `(local ip "*:*")`, "accept", "sandbox of Chromium, network.sb"},
		{"network-bind", `(local ip "*:*")`, "listen", "sandbox of Chromium, network.sb"},
		{"network-outbound", `(literal "/private/var/run/mDNSResponder")`, "names", "mDNSResponder(8)"},
		{"system-socket", `(socket-domain AF_INET) (socket-domain AF_INET6) (socket-domain AF_ROUTE)`, "", "socket(2)"},
		{"system-socket", `(require-all (socket-domain AF_SYSTEM) (socket-protocol 2))`, "control sockets of the system's network code", "sys/kern_control.h"},
		{"sysctl-read", `(sysctl-name-prefix "net.routetable.")`, "getifaddrs(3)", "route(4)"},
		{"mach-lookup", `(global-name "com.apple.SystemConfiguration.configd")`, "settings of the network", "configd(8)"},
		{"mach-lookup", `(global-name "com.apple.SystemConfiguration.DNSConfiguration")`, "name servers", "configd(8)"},
		{"mach-lookup", `(global-name "com.apple.dnssd.service")`, "names", "mDNSResponder(8)"},
		{"mach-lookup", `(global-name "com.apple.networkd")`, "connections of the system's libraries", "networkd(8)"},
		{"mach-lookup", `(global-name "com.apple.trustd")`, "certificates: Go programs fail without it", "trustd(8)"},
		{"mach-lookup", `(global-name "com.apple.trustd.agent")`, "certificates: Go programs fail without it", "trustd(8)"},
	}},
}

// devices are those that every program may use; the rest of /dev is hidden.
var devices = []section{{"Devices", []serviceRow{
	{"file-read* file-test-existence", `(literal "/dev")`, "its names", "ls"},
	{"file-read* file-test-existence file-write-data file-ioctl", `(literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty")`, "", "null(4), tty(4)"},
	{"file-read* file-test-existence", `(literal "/dev/random") (literal "/dev/urandom")`, "", "random(4)"},
	{"file-read* file-test-existence file-write-data", `(literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr") (literal "/dev/fd") (subpath "/dev/fd")`, "one's own descriptors", "fd(4)"},
	{"file-read* file-test-existence file-write-data file-ioctl", `(literal "/dev/dtracehelper")`, "the loader announces probes; it aborts if refused", "system.sb of macOS"},
	{"file-read* file-test-existence file-write* file-ioctl", `(literal "/dev/ptmx")`, "new terminals", "openpty(3)"},
	{"file-read* file-test-existence file-write* file-ioctl", `(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`, "terminals that the program made, no others", "system.sb of macOS"},
}}}

// sharedRows are hidden: macOS has no mounts that could put a directory of one's
// own in their place.
var sharedRows = []struct{ path, why string }{
	{"/private/tmp", "everybody's temporary files; TMPDIR names others"},
	{"/private/var/folders", "temporary files and caches of every program; TMPDIR names others"},
	{"/dev", "devices; the harmless ones stand below"},
}

// section is rows under a comment, "" for none.
type section struct {
	comment string
	rows    []serviceRow
}

func (w *writer) services(sections []section) {
	for _, s := range sections {
		if s.comment != "" {
			w.comment(s.comment)
		}
		for _, row := range s.rows {
			filter := row.filter
			if filter != "" {
				filter = " " + filter
			}
			w.line("(allow %s%s)%s", row.ops, filter, note(row.why))
		}
	}
}

func (w *writer) sysctls() {
	w.text.WriteString("(allow sysctl-read")
	for i, name := range sysctlRows {
		if i%4 == 0 {
			w.text.WriteString("\n ")
		}
		w.text.WriteString(` (sysctl-name "` + name + `")`)
	}
	w.text.WriteString(")\n")
}
