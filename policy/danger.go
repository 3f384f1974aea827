package policy

import (
	"path"
	"strings"
	"sync"
)

// dangerRow is a call that is always a question.
type dangerRow struct {
	names  string // blank-separated; a trailing * matches any ending
	verb   string // the first words that are not options; "a|b" are alternatives
	flags  string // one of these options must be there; none = always
	not    string // and none of these
	reason Reason
	detail string
}

var dangers = []dangerRow{
	// The machine.
	{names: "mkfs* mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted partprobe blkdiscard hdparm cryptsetup lvremove vgremove pvremove zpool zfs mdadm badblocks diskpart newfs*", reason: Destructive, detail: "formats or changes disks"},
	{names: "diskutil", verb: "erase*|partition*|zero*|secureErase|reformat|apfs", reason: Destructive, detail: "formats disks"},
	{names: "shutdown reboot halt poweroff telinit init kexec", reason: SystemChange, detail: "stops the machine"},
	{names: "systemctl loginctl", reason: SystemChange, detail: "controls services of the machine", verb: "poweroff|reboot|halt|kexec|suspend|hibernate|hybrid-sleep|rescue|emergency|default|isolate|start|stop|restart|reload|kill|enable|disable|mask|unmask|edit|set-*|daemon-*|import-environment|link|revert|terminate-*|kill-*|lock-*|switch-root|soft-reboot|exit"},
	{names: "service rc-service launchctl update-rc.d chkconfig", reason: SystemChange, detail: "controls services of the machine"},
	{names: "insmod rmmod modprobe depmod kmod sysctl dkms bpftool", reason: SystemChange, detail: "changes the kernel"},
	{names: "mount umount swapon swapoff losetup fusermount fusermount3 pivot_root switch_root", reason: SystemChange, detail: "changes what is mounted"},
	{names: "iptables ip6tables nft ufw firewall-cmd tc brctl ethtool ipset arptables ebtables pfctl", reason: SystemChange, detail: "changes the network of the machine"},
	{names: "useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup passwd chpasswd chsh chfn chage visudo vipw vigr newusers gpasswd", reason: SystemChange, detail: "changes accounts"},
	{names: "hostnamectl timedatectl localectl hwclock update-alternatives grub-install update-grub efibootmgr bcdedit nvram csrutil spctl defaults", reason: SystemChange, detail: "changes settings of the machine"},
	{names: "setcap chattr setfacl setfattr chcon restorecon semanage setenforce aa-disable apparmor_parser", reason: Privilege, detail: "changes what programs may do"},
	{names: "dmesg", flags: "-c -C --clear -D -E --console-off --console-on -n", reason: SystemChange, detail: "changes the kernel's log"},
	{names: "sudoedit sudoreplay", reason: Privilege, detail: "runs with other privileges"},

	// Later.
	{names: "crontab", not: "-l", reason: Persistence, detail: "changes what runs at set times"},
	{names: "at batch anacron atrm", reason: Persistence, detail: "runs something later"},
	{names: "systemd-tmpfiles", reason: SystemChange, detail: "changes the machine"},

	// Work that cannot be brought back.
	{names: "shred wipe srm", reason: Destructive, detail: "overwrites files"},
	{names: "rsync", flags: "--delete --del --delete-before --delete-after --delete-during --delete-delay --delete-excluded --remove-source-files --delete-missing-args", reason: Destructive, detail: "removes files"},
	{names: "tar gtar bsdtar", flags: "--remove-files --recursive-unlink", reason: Destructive, detail: "removes files"},
	{names: "zip", flags: "-m --move", reason: Destructive, detail: "removes files"},
	{names: "killall5", reason: MassSignal, detail: "signals every process"},
	{names: "logrotate", reason: Destructive, detail: "moves and removes logs"},
	{names: "git", verb: "reset", flags: "--hard --merge --keep", reason: Destructive, detail: "throws away changes"},
	{names: "git", verb: "clean", not: "-n --dry-run", reason: Destructive, detail: "removes files that are not tracked"},
	{names: "git", verb: "checkout", flags: "-f --force -- .", reason: Destructive, detail: "throws away changes"},
	{names: "git", verb: "switch", flags: "-f --force --discard-changes", reason: Destructive, detail: "throws away changes"},
	{names: "git", verb: "restore", flags: "--worktree -W", reason: Destructive, detail: "throws away changes"},
	{names: "git", verb: "restore", not: "--staged -S", reason: Destructive, detail: "throws away changes"},
	{names: "git", verb: "stash drop|stash clear", reason: Destructive, detail: "throws away stashed changes"},
	{names: "git", verb: "branch", flags: "-D -d --delete -M --force -f", reason: Destructive, detail: "removes or moves branches"},
	{names: "git", verb: "tag", flags: "-d --delete -f --force", reason: Destructive, detail: "removes or moves tags"},
	{names: "git", verb: "reflog expire|reflog delete", reason: Destructive, detail: "throws away the history of references"},
	{names: "git", verb: "gc|prune", flags: "--prune --expire --aggressive", reason: Destructive, detail: "throws away unreachable objects"},
	{names: "git", verb: "prune", reason: Destructive, detail: "throws away unreachable objects"},
	{names: "git", verb: "filter-branch|filter-repo|replace|fast-import", reason: Destructive, detail: "rewrites history"},
	{names: "git", verb: "update-ref|symbolic-ref", flags: "-d --delete --stdin", reason: Destructive, detail: "removes references"},
	{names: "git", verb: "worktree remove|worktree prune|submodule deinit", flags: "-f --force", reason: Destructive, detail: "removes a working tree"},
	{names: "git", verb: "rm", flags: "-r -f --force", not: "--cached -n --dry-run", reason: Destructive, detail: "removes files"},
	{names: "git", verb: "config", flags: "--global --system", reason: Persistence, detail: "changes the person's own configuration"},
	{names: "git", verb: "credential|credential-store|credential-cache|daemon|http-backend|instaweb|send-email|upload-pack|receive-pack|shell", reason: RemoteEffect, detail: "gives out credentials or serves the repository"},
	{names: "git", verb: "push", reason: RemoteEffect, detail: "changes another repository"},
	{names: "hg svn", verb: "push|commit|ci|revert|purge|strip", reason: RemoteEffect, detail: "changes or throws away history"},
	{names: "dropdb dropuser mysqladmin", reason: Destructive, detail: "removes a database"},

	// Other machines.
	{names: "ssh mosh telnet rsh rlogin rexec sshpass autossh", reason: RemoteShell, detail: "runs commands on another machine"},
	{names: "scp sftp rcp ftp lftp rclone s3cmd", reason: RemoteEffect, detail: "copies files to or from another machine"},
	{names: "nc ncat netcat socat", flags: "-e -c --exec --sh-exec", reason: RemoteShell, detail: "gives a program to the network"},
	{names: "socat", reason: RemoteShell, detail: "connects programs, files and the network"},
	{names: "npm pnpm yarn", verb: "publish|unpublish|deprecate|dist-tag|owner|access|token|login|adduser|logout|profile|team|hook", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "cargo", verb: "publish|yank|owner|login|logout", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "gem", verb: "push|yank|owner|signin", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "twine", verb: "upload", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "poetry uv flit hatch", verb: "publish", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "mvn gradle gradlew sbt", verb: "deploy|publish", reason: RemoteEffect, detail: "changes the package registry"},
	{names: "gh glab hub", reason: RemoteEffect, detail: "acts with the person's account", verb: "pr create|pr merge|pr close|pr edit|pr review|pr comment|pr ready|pr reopen|issue create|issue close|issue edit|issue comment|issue delete|issue transfer|release create|release delete|release upload|release edit|repo create|repo delete|repo edit|repo fork|repo archive|repo rename|repo sync|api|secret|variable|auth|gist create|gist delete|gist edit|workflow run|workflow disable|workflow enable|run cancel|run rerun|run delete|ssh-key|gpg-key|label|cache delete|extension|alias|config|codespace|mr"},
	{names: "aws gcloud az doctl heroku fly flyctl vercel netlify wrangler firebase railway supabase oci ibmcloud linode-cli hcloud scw", reason: RemoteEffect, detail: "acts with the person's account"},
	{names: "kubectl oc", verb: "apply|create|delete|replace|patch|edit|scale|rollout|exec|run|cp|attach|debug|drain|cordon|uncordon|taint|label|annotate|expose|autoscale|set|proxy|port-forward|certificate|auth|config|kustomize|krew", reason: RemoteEffect, detail: "changes a cluster"},
	{names: "helm", verb: "install|upgrade|uninstall|delete|rollback|push|repo|plugin|registry", reason: RemoteEffect, detail: "changes a cluster"},
	{names: "terraform tofu terragrunt pulumi cdk ansible ansible-playbook", verb: "apply|destroy|import|taint|untaint|state|up|deploy|refresh|force-unlock|login|logout|workspace", reason: RemoteEffect, detail: "changes infrastructure"},
	{names: "ansible ansible-playbook ansible-pull", reason: RemoteEffect, detail: "runs commands on other machines"},
	{names: "mail mailx sendmail mutt msmtp swaks", reason: RemoteEffect, detail: "sends mail"},

	// Containers run outside of the sandbox: who reaches the daemon is root.
	{
		names: "docker podman nerdctl docker-compose podman-compose lxc lxc-attach incus crictl ctr buildah machinectl vagrant multipass limactl colima minikube kind", reason: Container, detail: "runs or changes containers, outside the sandbox",
		verb: "run|exec|build|buildx|compose|up|down|start|stop|restart|kill|rm|rmi|create|commit|cp|load|import|push|login|logout|tag|update|rename|pause|unpause|attach|system|volume|network|swarm|service|stack|node|secret|config|plugin|context|builder|image|container|manifest|trust|pull|save|export|launch|delete|shell|ssh|init|destroy|apply|enter|*",
	},
}

var dangerTable = sync.OnceValue(func() map[string][]*dangerRow {
	table := map[string][]*dangerRow{}
	for i := range dangers {
		eachName(dangers[i].names, func(name string) { table[name] = append(table[name], &dangers[i]) })
	}
	return table
})

// dangerPrefixes are the rows whose names end in "*".
var dangerPrefixes = sync.OnceValue(func() (list []struct {
	prefix string
	row    *dangerRow
},
) {
	for name, rows := range dangerTable() {
		if strings.HasSuffix(name, "*") {
			list = append(list, struct {
				prefix string
				row    *dangerRow
			}{name[:len(name)-1], rows[0]})
		}
	}
	return list
})

// setsProgram reports a git config call that makes git run a program later.
func setsProgram(args []word) bool {
	if !verbMatches("config", "git", args) || hasFlag(args, "--get --get-all --get-regexp --get-urlmatch --list -l --unset --unset-all") {
		return false
	}
	operands := 0
	runs := false
	for _, a := range args {
		if a.fixed > 0 && a.text[0] == '-' {
			continue
		}
		operands++
		key := strings.ToLower(a.text)
		section, _, _ := strings.Cut(key, ".")
		name := key[strings.LastIndexByte(key, '.')+1:]
		runs = runs || section != key && (configKeyRuns(section, name) || section == "alias" || section == "pager" || section == "core" && listed("hookspath fsmonitor pager editor", name) ||
			section == "credential" || section == "diff" && name == "external" || section == "sequence")
	}
	return runs && operands > 2
}

// remoteOperand reports a host:path or host::module operand: rsync(1), scp(1).
func remoteOperand(args []word) bool {
	for _, a := range args {
		known := a.text[:a.fixed]
		k := strings.IndexByte(known, ':')
		if k > 0 && known[0] != '-' && !strings.Contains(known[:k], "/") {
			return true
		}
	}
	return false
}

// danger returns the first row that holds for a call.
func danger(base string, args []word) *dangerRow {
	for _, row := range dangerTable()[base] {
		if row.holds(base, args) {
			return row
		}
	}
	for _, p := range dangerPrefixes() {
		if strings.HasPrefix(base, p.prefix) {
			return p.row
		}
	}
	return nil
}

func (row *dangerRow) holds(base string, args []word) bool {
	if row.verb != "" && !verbMatches(row.verb, base, args) {
		return false
	}
	for _, a := range args {
		if row.not == "" || a.literal() && a.text == "--" {
			break
		}
		if a.literal() && flagMatches(row.not, a.text) {
			return false
		}
	}
	if row.flags == "" {
		return true
	}
	for _, a := range args {
		if a.fixed > 0 && flagMatches(row.flags, a.text[:a.fixed]) {
			return true
		}
	}
	return false
}

// flagMatches reports whether a word is, abbreviates or clusters one of the
// options.
func flagMatches(flags, w string) bool {
	if listed(flags, w) {
		return true
	}
	if strings.HasPrefix(w, "--") && len(w) > 3 {
		name, _, _ := strings.Cut(w, "=")
		for list := flags; list != ""; {
			var f string
			f, list, _ = strings.Cut(list, " ")
			if len(f) > 2 && strings.HasPrefix(f, name) {
				return true
			}
		}
		return false
	}
	if len(w) > 2 && w[0] == '-' && w[1] != '-' {
		for _, c := range w[1:] {
			if listed(flags, "-"+string(c)) {
				return true
			}
		}
	}
	return false
}

// globalValues are options before the verb that take the next word.
var globalValues = map[string]string{
	"git":       "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source",
	"docker":    "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey",
	"kubectl":   "-n --namespace --context --kubeconfig --cluster --user -s --server",
	"npm":       "--prefix -C -w --workspace --registry --loglevel",
	"pnpm":      "--dir -C --filter -F --prefix",
	"yarn":      "--cwd",
	"cargo":     "--color --config -Z -C",
	"gh":        "-R --repo",
	"systemctl": "-t --type -H --host -M --machine -n --lines -o --output --root",
}

// verbMatches compares the words that are no options with the alternatives.
func verbMatches(verb, base string, args []word) bool {
	var words [3]string
	n := 0
	values := globalValues[base]
	for i := 0; i < len(args) && n < len(words); i++ {
		a := args[i]
		if a.fixed > 0 && a.text[0] == '-' {
			if n == 0 && listed(values, a.text) {
				i++
			}
			continue
		}
		words[n] = a.text
		n++
	}
	for verb != "" {
		var alt string
		alt, verb, _ = strings.Cut(verb, "|")
		if alt == "*" {
			return n > 0
		}
		ok := n > 0
		for k := 0; alt != "" && ok; k++ {
			var w string
			w, alt, _ = strings.Cut(alt, " ")
			if strings.HasSuffix(w, "*") {
				ok = k < n && strings.HasPrefix(words[k], w[:len(w)-1])
			} else {
				ok = k < n && words[k] == w
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// interpreters run code; the flags are those that carry it.
var interpreters = []struct{ names, code string }{
	{"python python2 python3 python3.* pypy pypy3", "-c -m"},
	{"node nodejs deno bun", "-e --eval -p --print -pe"},
	{"perl", "-e -E -ne -pe -lne -n -p"},
	{"ruby", "-e -ne -pe"},
	{"php", "-r -f"},
	{"lua luajit", "-e"},
	{"Rscript R", "-e"},
	{"julia elixir", "-e -E"},
	{"osascript", "-e"},
	{"tclsh wish expect guile racket scheme sbcl clojure", "-e -c"},
}

func interpreterCode(base string) (string, bool) {
	for _, row := range interpreters {
		if listedPattern(row.names, base) {
			return row.code, true
		}
	}
	return "", false
}

// writerRow says which operands of a program are written, for targets.
type writerRow struct {
	names   string
	from    int    // first operand that is written; -1 = the last one
	options string // options whose value is written
	values  string // other options with a value, in the next word
}

var writers = []writerRow{
	{names: "touch mkdir rmdir mkfifo mknod tee truncate unlink shred gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd", values: "-m -r -d -t -s --mode --reference --date --size"},
	{names: "cp mv install ln link scp", from: -1, options: "-t --target-directory", values: "-m -o -g -S --mode --owner --group --suffix"},
	{names: "rsync", from: -1, values: "-e --rsh --exclude --include --exclude-from --filter"},
	{names: "chmod chown chgrp chattr setfacl", from: 1},
	{names: "curl", from: 99, options: "-o --output --output-dir -D --dump-header -c --cookie-jar --trace --trace-ascii"},
	{names: "wget", from: 99, options: "-O --output-document -P --directory-prefix -o --output-file -a --append-output"},
	{names: "tar gtar bsdtar", from: 99, options: "-C --directory"},
	{names: "unzip", from: 99, options: "-d"},
	{names: "sort shuf iconv yq tree", from: 99, options: "-o --output"},
	{names: "patch", from: 99, options: "-d --directory -o --output -r --reject-file"},
	{names: "split csplit", from: 1},
	{names: "mktemp", from: 99, options: "-p --tmpdir"},
	{names: "xxd uniq", from: 1, values: "-c -g -l -o -s -f -w -n"},
	{names: "go", from: 99, options: "-o"},
	{names: "gcc g++ cc c++ clang clang++ ld", from: 99, options: "-o"},
}

var writerTable = sync.OnceValue(func() map[string]*writerRow {
	table := map[string]*writerRow{}
	for i := range writers {
		eachName(writers[i].names, func(name string) { table[name] = &writers[i] })
	}
	return table
})

// written judges the paths that a program writes.
func (f *frame) written(base string, c *command, st *state) {
	row := writerTable()[base]
	inPlace := (base == "sed" || base == "gsed" || base == "perl") && hasInPlace(c.args())
	if base == "dd" {
		for _, a := range c.args() {
			if strings.HasPrefix(a.text, "of=") && a.fixed >= 3 {
				f.writePath(c, a.from(3), st)
			}
		}
		return
	}
	if row == nil && !inPlace {
		return
	}
	if inPlace {
		row = &writerRow{from: 1, values: "-e -f --expression --file"}
	}
	var operands []word
	args := c.args()
	ended, target := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case ended || a.fixed == 0 || a.text[0] != '-' || a.text == "-":
			operands = append(operands, a)
		case a.text == "--":
			ended = true
		case listed(row.options, a.text) && i+1 < len(args):
			i++
			f.writePath(c, args[i], st)
			target = target || a.text == "-t"
		case listed(row.values, a.text):
			i++
			if inPlace {
				operands = append(operands, literal("."))
			}
		default:
			if name, _, glued := strings.Cut(a.text, "="); glued && listed(row.options, name) && a.fixed > len(name) {
				f.writePath(c, a.from(len(name)+1), st)
				target = target || name == "--target-directory"
			} else if len(a.text) > 2 && a.text[1] != '-' && listed(row.options, a.text[:2]) && a.fixed > 2 {
				f.writePath(c, a.from(2), st)
			}
		}
	}
	if target {
		return
	}
	if base == "mv" {
		// What is moved away is changed as well.
		for _, w := range operands {
			f.moved(c, w, st)
		}
		return
	}
	switch {
	case row.from < 0 && len(operands) > 1:
		if f.j.fileRules {
			f.operandsRead(c, operands[:len(operands)-1], st)
		}
		if !strings.Contains(operands[len(operands)-1].text[:operands[len(operands)-1].fixed], ":") {
			f.writePath(c, operands[len(operands)-1], st)
		}
	case row.from >= 0:
		for _, w := range operands[min(row.from, len(operands)):] {
			f.writePath(c, w, st)
			if (base == "chmod" || base == "chown" || base == "chgrp") && w.kind != dynamicWord {
				for _, raw := range candidates(w, st, make([]string, 0, maxDirs)) {
					if f.j.top(path.Clean(raw)) != "" {
						f.add(c, item{Target: Target{Reason: SystemChange, Detail: "changes the root or the home directory"}, risk: riskDanger})
					}
				}
			}
		}
	}
}

func (f *frame) moved(c *command, w word, st *state) {
	f.writePath(c, w, st)
	for _, raw := range candidates(w, st, make([]string, 0, maxDirs)) {
		if w.kind != dynamicWord && f.j.top(path.Clean(raw)) != "" {
			f.add(c, item{Target: Target{Reason: Destructive, Detail: "moves the home directory or one above it"}, risk: riskDanger})
		}
	}
}

func hasInPlace(args []word) bool {
	for _, a := range args {
		if a.fixed > 1 && a.text[0] == '-' && (strings.HasPrefix(a.text, "--in-place") || a.text[1] != '-' && strings.Contains(a.text, "i")) {
			return true
		}
	}
	return false
}
