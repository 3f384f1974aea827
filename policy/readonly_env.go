package policy

// ReadOnlyEnv are the overrides to set when a call was allowed as read-only:
// they switch off the programs that a repository's configuration could make
// git start (git-config(1), git(1) ENVIRONMENT VARIABLES). diff.external is not
// among them: git runs an empty one, and a repository that sets it is not
// judged read-only.
var ReadOnlyEnv = []string{
	"GIT_CONFIG_COUNT=7",
	"GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
	"GIT_CONFIG_KEY_1=core.pager", "GIT_CONFIG_VALUE_1=cat",
	"GIT_CONFIG_KEY_2=core.hooksPath", "GIT_CONFIG_VALUE_2=/dev/null",
	"GIT_CONFIG_KEY_3=protocol.ext.allow", "GIT_CONFIG_VALUE_3=never",
	"GIT_CONFIG_KEY_4=safe.bareRepository", "GIT_CONFIG_VALUE_4=explicit",
	"GIT_CONFIG_KEY_5=log.showSignature", "GIT_CONFIG_VALUE_5=false",
	"GIT_CONFIG_KEY_6=diff.ignoreSubmodules", "GIT_CONFIG_VALUE_6=dirty",
	"GIT_PAGER=cat",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"PAGER=cat",
}
