package policy

import "strings"

// envRow says what it means to set an environment variable. Rows are tried in
// order.
type envRow struct {
	names  string // blank-separated; a trailing * matches any ending
	risk   risk
	reason Reason
	value  func(string) bool // true: the value is harmless, and the row does not hold
	detail string
}

var envRows = []envRow{
	// Only how output looks: locale(7), tzset(3), no-color.org.
	{names: "LC_* LANG LANGUAGE", risk: riskUnproven, reason: Environment, value: noSlash},
	{names: "TZ", risk: riskUnproven, reason: Environment, value: timeZone},
	{
		names: "TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI LS_COLORS QUOTING_STYLE TIME_STYLE BLOCK_SIZE PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8",
		risk:  riskUnproven, reason: Environment, value: noSlash,
	},
	{names: "GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT", risk: riskUnproven, reason: Environment, value: func(v string) bool { return v == "0" }},
	{names: "GIT_PAGER PAGER GH_PAGER SYSTEMD_PAGER MANPAGER BAT_PAGER", risk: riskDanger, reason: EnvInjection, value: harmlessProgram, detail: "names a program that others start"},

	// The loader, the shell and run times start code from these: ld.so(8), bash(1),
	// dyld(1), perlrun(1), ruby(1), node(1), java(1), git(1), less(1).
	{
		names: "BASH_CMDS BASH_ALIASES LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 BASH_FUNC_* BASH_LOADABLES_PATH PERL5DB LESSOPEN LESSCLOSE GCONV_PATH LOCPATH NLSPATH GETCONF_DIR " +
			"GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS SSH_ASKPASS GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG* GIT_ALLOW_PROTOCOL JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS PYTHONSTARTUP PYTHONINSPECT RUBYOPT PERL5OPT NODE_OPTIONS " +
			"TAR_OPTIONS RSYNC_RSH CVS_RSH MAKEFLAGS GROFF_BIN_PATH MANOPT RIPGREP_CONFIG_PATH GREP_OPTIONS TCLLIBPATH SUDO_ASKPASS",
		risk: riskDanger, reason: EnvInjection, value: plainOptions, detail: "makes programs load or run code",
	},
	{names: "EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR FCEDIT BROWSER HISTFILE HISTCONTROL PROMPT_DIRTRIM", risk: riskUnproven, reason: EnvInjection, value: harmlessProgram, detail: "names a program that others start"},

	// They change how later commands are found and read.
	{
		names: "PATH IFS CDPATH HOME SHELL PS0 PS1 PS2 PS3 GLOBIGNORE EXECIGNORE POSIXLY_CORRECT BASH_COMPAT BASH_XTRACEFD FPATH FIGNORE OPTIND LD_* DYLD_* GIT_* XDG_* PYTHONPATH PYTHONHOME PERL5LIB RUBYLIB NODE_PATH CLASSPATH GOFLAGS GOPATH GOROOT GOPROXY GOENV GOTOOLCHAIN CARGO_* RUSTC* RUSTFLAGS CC CXX LD AR npm_config_* NPM_CONFIG_* JAVA_HOME TERMINFO TERMCAP *_OPTIONS *_OPTS",
		risk:  riskUnproven, reason: EnvInjection, detail: "changes how programs are found or run",
	},
}

func noSlash(v string) bool { return !strings.ContainsAny(v, "/\\") }

func timeZone(v string) bool {
	return !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, ":") && !strings.Contains(v, "..")
}

func harmlessProgram(v string) bool { return listed("cat true :", v) || v == "" }

// plainOptions reports options of run times that only set limits.
func plainOptions(v string) bool {
	if v == "" {
		return true
	}
	for _, o := range strings.Fields(v) {
		name, _, _ := strings.Cut(o, "=")
		if !listed("--max-old-space-size --max-semi-space-size --stack-trace-limit --no-warnings --no-deprecation --trace-warnings --enable-source-maps --experimental-vm-modules --openssl-legacy-provider -Xmx -Xms -j", name) &&
			!strings.HasPrefix(o, "-Xm") && !(strings.HasPrefix(o, "-j") && isNumber(o[2:])) {
			return false
		}
	}
	return true
}

// envRisk judges the setting of a variable. A variable on no row is safe to
// set in the shell.
func envRisk(name string, w word) (risk, Reason, string) {
	for i := range envRows {
		row := &envRows[i]
		if !listedPattern(row.names, name) {
			continue
		}
		if row.value != nil && w.literal() && row.value(w.text) {
			return riskSafe, Cosmetic, ""
		}
		return row.risk, row.reason, row.detail
	}
	return riskSafe, "", ""
}

// listedPattern is listed, where an entry may begin or end in "*".
func listedPattern(list, name string) bool {
	if listed(list, name) {
		return true
	}
	for list != "" {
		var p string
		p, list, _ = strings.Cut(list, " ")
		if n := len(p); n > 1 && (p[n-1] == '*' && strings.HasPrefix(name, p[:n-1]) || p[0] == '*' && strings.HasSuffix(name, p[1:])) {
			return true
		}
	}
	return false
}
