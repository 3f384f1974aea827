package policy

import "sync"

// wrapper describes a program that starts another one.
type wrapper struct {
	names string // blank-separated
	options
	operands int // words of its own before the command

	code    string // options whose value is shell code
	splits  string // options whose value is split into words
	chdir   string // options that change the directory
	clears  string // options that take variables out of the environment
	replace string // options that name a marker to be replaced
	toShell string // options after which the words go to a shell
	toExec  string // options after which they do not
	writes  string // options that name a file to write
	harm    string // options that make it a danger

	dash          bool // a lone dash is an option
	assigns       bool // NAME=VALUE words come before the command
	joined        bool // the words of the command are joined and given to a shell
	appends       bool // words from standard input are appended
	same          bool // the command runs in this shell
	functions     bool // functions of the shell are looked up
	afterCode     bool // operands after code are not a command
	optionsAfter  bool // code options may follow the operands
	before        bool // a first word that is no option comes before the options
	writesOperand bool // the first operand is a file that is written or created

	risk   risk // of the wrapper itself
	reason Reason
	detail string
	alone  risk // without a command it starts a shell or acts by itself
}

// wrappers, by the manuals of coreutils, util-linux, procps, sudo, shadow,
// findutils, moreutils and the programs themselves.
var wrappers = []wrapper{
	// Transparent: they change how, not what.
	{names: "timeout gtimeout", options: options{short: "vpf", value: "ks", long: "foreground preserve-status verbose kill-after= signal="}, operands: 1},
	{names: "nice gnice", options: options{short: "0123456789", value: "n", long: "adjustment="}},
	{names: "setsid", options: options{short: "cfw", long: "ctty fork wait"}},
	{names: "stdbuf gstdbuf", options: options{value: "ioe", long: "input= output= error="}},
	{names: "ionice", options: options{short: "t", value: "cn", long: "class= classdata= ignore"}},
	{names: "chrt", options: options{short: "abdfiorRv", value: "TPD", long: "batch deadline fifo idle other rr reset-on-fork all-tasks verbose"}, operands: 1},
	{names: "taskset", options: options{short: "ac", long: "all-tasks cpu-list"}, operands: 1},
	{names: "time gtime", options: options{short: "pvq", value: "f", long: "portability verbose quiet format="}},
	{
		names: "env genv", options: options{short: "i0v", value: "uCSP", long: "ignore-environment null unset= chdir= split-string= debug block-signal? default-signal? ignore-signal?"},
		alone: riskNone, dash: true, assigns: true, splits: "-S --split-string", clears: "-i -u --ignore-environment --unset", chdir: "-C --chdir",
	},
	{names: "command", options: options{short: "p"}, same: true},
	{names: "builtin", same: true},
	{names: "exec", options: options{short: "cl", value: "a"}, same: true},
	{names: "busybox toybox"},
	{names: "linux32 linux64 i386 x86_64", options: options{short: "BFILRSTXZv3", long: "32bit 3gb 4gb addr-no-randomize addr-compat-layout fdpic-funcptrs mmap-page-zero read-implies-exec short-inode sticky-timeouts uname-2.6 verbose whole-seconds"}},
	{names: "setarch", options: options{short: "BFILRSTXZv3", long: "32bit 3gb 4gb addr-no-randomize addr-compat-layout fdpic-funcptrs mmap-page-zero read-implies-exec short-inode sticky-timeouts uname-2.6 verbose whole-seconds"}, before: true},
	{names: "choom", options: options{value: "n", long: "adjust="}},
	{names: "uclampset", options: options{short: "aRv", value: "mM", long: "all-tasks reset-on-fork verbose"}},
	{names: "numactl", options: options{short: "ail", value: "imNCpP", long: "interleave= preferred= membind= cpunodebind= physcpubind= localalloc all"}},
	{
		names: "xargs gxargs", options: options{short: "0rtpxo", value: "aEIndLPsJRS", glued: "eil", long: "null no-run-if-empty verbose interactive exit open-tty max-args= max-procs= max-chars= delimiter= arg-file= replace? eof? max-lines? show-limits"},
		appends: true, replace: "-I -i -J --replace",
	},

	// They leave something behind, or wait, or start a session.
	{names: "nohup", risk: riskUnproven, reason: FileChange, detail: "may write nohup.out"},
	{
		names: "flock", options: options{short: "senuxFo", value: "wE", long: "shared exclusive nonblock nonblocking unlock close no-fork verbose timeout= wait= conflict-exit-code="},
		operands: 1, writesOperand: true, optionsAfter: true, code: "-c --command", risk: riskUnproven, reason: FileChange, detail: "creates its lock file",
	},
	{
		names: "watch", options: options{short: "bcegtwxpr", value: "nqs", glued: "d", long: "beep color differences? errexit chgexit equexit= interval= precise no-title no-wrap exec no-rerun"},
		joined: true, toExec: "-x --exec", risk: riskUnproven, reason: UnknownProgram, detail: "runs a command again and again",
	},
	{
		names: "script", options: options{short: "aefqt", value: "cIOBoEmT", long: "append return flush force quiet command= log-in= log-out= log-io= logging-format= log-timing= output-limit= echo= timing?"},
		code: "-c --command", operands: 1, writesOperand: true, afterCode: true, risk: riskUnproven, reason: FileChange, detail: "writes a transcript", alone: riskUnproven,
	},
	{names: "unbuffer expect_unbuffer", options: options{short: "p"}, risk: riskUnproven, reason: UnknownProgram},
	{names: "rlwrap", options: options{short: "acHiInNorRUvwW", value: "bCfgmpqsStzDeO"}, risk: riskUnproven, reason: FileChange},
	{names: "faketime", options: options{short: "fm", value: "p"}, operands: 1, risk: riskUnproven, reason: Environment},
	{names: "fakeroot", options: options{short: "uhv", value: "lsib"}, risk: riskUnproven, reason: UnknownProgram},
	{
		names: "strace", options: options{short: "fFrtTvVxyYziCcdDhkqnZ", value: "aebEIoOpPsSuUX", long: "follow-forks output-separately summary summary-only relative-timestamps trace= status= string-limit= output="},
		writes: "-o --output", risk: riskUnproven, reason: UnknownProgram, detail: "traces a program",
	},
	{names: "ltrace", options: options{short: "bcCfhiLrStTV", value: "aADeEFlnopsuwx"}, writes: "-o", risk: riskUnproven, reason: UnknownProgram, detail: "traces a program"},
	{names: "prlimit", options: options{glued: "cdefilmnqrstuvxy", long: "core? data? nice? fsize? sigpending? memlock? rss? nofile? msgqueue? rtprio? stack? cpu? nproc? as? locks? rttime?"}, risk: riskUnproven, reason: UnknownProgram},
	{names: "cpulimit", options: options{short: "zqfmvb", value: "lce", long: "limit= cpu= include-children foreground"}, risk: riskUnproven, reason: UnknownProgram},
	{names: "dbus-run-session", options: options{long: "config-file= dbus-daemon="}, risk: riskUnproven, reason: UnknownProgram},
	{names: "xvfb-run", options: options{short: "a", value: "enfpsw", long: "auto-servernum server-num= server-args= error-file= wait="}, risk: riskUnproven, reason: UnknownProgram},
	{
		names: "parallel", options: options{short: "0ktquXmvgz", value: "jnNLIaSdEPrsC", long: "jobs= keep-order dry-run bar eta halt= delay= timeout= progress null will-cite colsep= arg-file= tag line-buffer ungroup retries= joblog= results= max-args= no-notice"},
		joined: true, appends: true, replace: "-I", risk: riskUnproven, reason: UnknownProgram, detail: "runs a command for every input",
	},
	{names: "entr", options: options{short: "acdnprsxz"}, toShell: "-s", risk: riskUnproven, reason: UnknownProgram},
	{names: "caffeinate", options: options{short: "disum", value: "tw"}, risk: riskUnproven, reason: UnknownProgram},
	{names: "chronic ifne", options: options{short: "evn"}, risk: riskUnproven, reason: UnknownProgram},
	{
		names: "hyperfine", options: options{short: "iN", value: "wmMrpcns", long: "warmup= runs= min-runs= max-runs= ignore-failure prepare= cleanup= setup= shell= style= export-json= export-markdown= show-output"},
		code: "-p -c -s --prepare --cleanup --setup", joined: true, risk: riskUnproven, reason: UnknownProgram,
	},
	{names: "catchsegv valgrind", options: options{short: "qvhd", long: "tool= leak-check= show-leak-kinds= track-origins= error-exitcode= log-file= quiet verbose trace-children= suppressions= num-callers= xml= xml-file="}, risk: riskUnproven, reason: UnknownProgram},
	{names: "proxychains proxychains4 torsocks torify tsocks", options: options{short: "q", value: "f"}, risk: riskUnproven, reason: NetworkAccess, detail: "sends traffic through a proxy"},
	{names: "ssh-agent", options: options{short: "cDdks", value: "aEPt"}, risk: riskUnproven, reason: UnknownProgram},
	{names: "npx bunx", options: options{short: "yqn", value: "pc", long: "yes no quiet package= call= no-install ignore-existing bun"}, code: "-c --call", risk: riskUnproven, reason: NetworkAccess, detail: "fetches and runs a package"},
	{names: "winpty systemd-inhibit", risk: riskUnproven, reason: UnknownProgram},

	// They change who runs it or what confines it.
	{
		names: "sudo", options: options{short: "AbBEeHiKklNnPSsVv", value: "aCcDghpRrTtUu", long: "askpass background bell close-from= chdir= preserve-env? edit group= set-home host= login remove-timestamp reset-timestamp list no-update non-interactive preserve-groups prompt= chroot= role= stdin shell command-timeout= type= other-user= user= version validate"},
		assigns: true, chdir: "-D --chdir -R --chroot", toShell: "-s -i --shell --login", risk: riskDanger, reason: Privilege, detail: "runs with other privileges",
	},
	{names: "doas", options: options{short: "nsL", value: "Cu"}, assigns: true, risk: riskDanger, reason: Privilege, detail: "runs with other privileges"},
	{
		names: "su runuser", options: options{short: "lmpfPT", value: "cCgGsuw", long: "command= session-command= fast group= supp-group= login preserve-environment pty shell= user= whitelist-environment= whitelist="},
		code: "-c -C --command --session-command", dash: true, operands: 1, optionsAfter: true, risk: riskDanger, reason: Privilege, detail: "runs as another user",
	},
	{names: "sg", operands: 1, code: "-c", joined: true, risk: riskDanger, reason: Privilege, detail: "runs with another group"},
	{names: "pkexec", options: options{long: "user= disable-internal-agent keep-cwd"}, risk: riskDanger, reason: Privilege, detail: "runs with other privileges"},
	{names: "run0", options: options{value: "ugD", long: "user= group= chdir= nice= unit= property= setenv= background= pty pipe slice= description="}, risk: riskDanger, reason: Privilege, detail: "runs with other privileges"},
	{names: "gosu su-exec", operands: 1, risk: riskDanger, reason: Privilege, detail: "runs as another user"},
	{
		names: "setpriv capsh", options: options{long: "reuid= regid= clear-groups keep-groups init-groups groups= inh-caps= ambient-caps= bounding-set= no-new-privs securebits= pdeathsig= selinux-label= apparmor-profile= reset-env landlock-access= landlock-rule= seccomp-filter= ptracer= print drop= user="},
		code: "-c", optionsAfter: true, risk: riskDanger, reason: Privilege, detail: "changes the privileges of a program",
	},
	{names: "chroot", options: options{long: "userspec= groups= skip-chdir"}, operands: 1, risk: riskDanger, reason: Privilege, detail: "changes the root directory"},
	{
		names: "unshare", options: options{short: "munipUfrcCT", value: "SGRw", long: "mount? uts? ipc? net? pid? user? cgroup? time? fork mount-proc? map-root-user map-current-user map-auto map-user= map-group= map-users= map-groups= kill-child? propagation= setgroups= root= wd= setuid= setgid= keep-caps"},
		risk: riskDanger, reason: Privilege, detail: "makes new namespaces",
	},
	{names: "nsenter", options: options{short: "aFeEZ", value: "tSGN", glued: "muinpUCTrw", long: "all target= mount? uts? ipc? net? pid? user? cgroup? time? setuid= setgid= preserve-credentials root? wd? no-fork env"}, risk: riskDanger, reason: Privilege, detail: "enters other namespaces"},
	{names: "bwrap firejail systemd-nspawn proot fakechroot", risk: riskDanger, reason: Privilege, detail: "makes a sandbox of its own"},
	{
		names: "systemd-run", options: options{short: "dPtSGqr", value: "pEHMu", long: "user system scope unit= property= description= slice= collect wait pty pipe quiet setenv= uid= gid= nice= on-calendar= on-active= on-boot= remain-after-exit same-dir working-directory= shell"},
		risk: riskDanger, reason: Persistence, detail: "runs outside of this process tree",
	},
	{names: "start-stop-daemon daemonize", risk: riskDanger, reason: Persistence, detail: "starts a daemon"},
}

var wrapperTable = sync.OnceValue(func() map[string]*wrapper {
	table := make(map[string]*wrapper, 2*len(wrappers))
	for i := range wrappers {
		eachName(wrappers[i].names, func(name string) { table[name] = &wrappers[i] })
	}
	return table
})

func wrapperFor(name string) *wrapper { return wrapperTable()[name] }

// eachName calls fn for every blank-separated name.
func eachName(names string, fn func(string)) {
	for names != "" {
		k := 0
		for k < len(names) && names[k] != ' ' {
			k++
		}
		if k > 0 {
			fn(names[:k])
		}
		names = names[min(k+1, len(names)):]
	}
}
