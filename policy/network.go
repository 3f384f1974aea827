package policy

import (
	"strings"
	"sync"
)

// netRow says where on its command line a program names the hosts that it
// connects to.
type netRow struct {
	names string
	verb  string // as of dangerRow; "" = always
	alone bool   // without a verb too

	value string // one-letter options with a value
	long  string // other options with a value, in the next word or after "="
	hosts string // options whose value is a host or a URL
	ports string // options whose value is the port of the operand
	other string // options with which hosts stand elsewhere, as in a file

	operands hostKind // which operands name hosts
	port     int      // where the operand names none; 0 = not known
	chooses  bool     // it has hosts of its own, as its configuration says
}

type hostKind uint8

const (
	hostInURL    hostKind = iota // operands with "://"
	hostURLs                     // every operand is a URL, in which the scheme may be left out
	hostURL                      // the first that is no method of HTTP is
	hostFirst                    // the first is [USER@]HOST, HOST:PORT or a URL; the second may be a port
	hostEvery                    // every one is
	hostRemote                   // the first is a repository: a URL, [USER@]HOST:PATH, a folder or a name
	hostPaths                    // every one is a path, which can be [USER@]HOST:PATH or HOST::MODULE
	hostImage                    // the first is an image, [HOST/]NAME
	hostAtServer                 // @HOST
)

// netRows, by the manuals of the programs.
var netRows = []netRow{
	{
		names: "curl", value: "AbcCdDeEFHhKmoPQrtTuUwxXyYz", operands: hostURLs, port: 80,
		long:  "--user-agent --cookie --cookie-jar --continue-at --data --data-raw --data-binary --data-ascii --data-urlencode --json --dump-header --referer --cert --key --cacert --capath --form --form-string --header --max-time --connect-timeout --output --output-dir --ftp-port --quote --range --time-cond --upload-file --user --proxy-user --write-out --request --request-target --speed-limit --speed-time --retry --retry-delay --retry-max-time --max-redirs --max-filesize --limit-rate --interface --local-port --ciphers --tls13-ciphers --cert-type --key-type --pass --pinnedpubkey --proto --proto-redir --noproxy --keepalive-time --oauth2-bearer --aws-sigv4 --url-query --trace --trace-ascii --stderr --rate --parallel-max --etag-save --etag-compare --hostpubmd5 --mail-from --mail-rcpt --netrc-file --unix-socket --abstract-unix-socket --variable --expand-data --tls-max --curves --crlfile --egd-file --engine --happy-eyeballs-timeout-ms --proxy-header --login-options --random-file --resolve --dns-interface",
		hosts: "--url -x --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname --proxy1.0 --doh-url", other: "-K --config --connect-to --proto-default --expand-url --dns-servers",
	},
	{
		names: "wget wget2", value: "oaBtOTwQPUlARDIXei", operands: hostURLs, port: 80,
		long:  "--output-file --append-output --tries --output-document --timeout --dns-timeout --connect-timeout --read-timeout --wait --waitretry --quota --directory-prefix --user-agent --level --accept --reject --accept-regex --reject-regex --domains --exclude-domains --include-directories --exclude-directories --user --password --header --post-data --post-file --body-data --body-file --method --limit-rate --ca-certificate --certificate --private-key --load-cookies --save-cookies --referer --bind-address --cut-dirs --default-page --max-redirect --progress --restrict-file-names --secure-protocol --follow-tags --ignore-tags --local-encoding --remote-encoding --regex-type --warc-file",
		other: "-i --input-file -B --base -e --execute --config",
	},
	{names: "http https xh xhs", value: "apAPos", long: "--auth --auth-type --print --pretty --style --output --session --verify --cert --cert-key --timeout --form --boundary", hosts: "--proxy", operands: hostURL, port: 80},
	{names: "aria2c axel lynx links w3m yt-dlp youtube-dl httpx", value: "doisjxk", long: "--dir --out --output --split", other: "--input-file -i", operands: hostURLs, port: 80},
	{names: "grpcurl websocat wscat hey ab wrk siege vegeta nikto sqlmap", value: "cnHdt", operands: hostURLs},

	{names: "git", verb: "clone", value: "boucj", long: "--branch --origin --upload-pack --reference --reference-if-able --config --depth --shallow-since --shallow-exclude --separate-git-dir --jobs --filter --template --server-option --recurse-submodules", hosts: "--bundle-uri", operands: hostRemote},
	{names: "git", verb: "fetch|pull|push|ls-remote|fetch-pack|send-pack|remote update|remote show|remote prune|submodule update|lfs fetch|lfs pull|lfs push|svn fetch|p4 sync", value: "oj", long: "--depth --deepen --shallow-since --upload-pack --receive-pack --exec --push-option --refmap --jobs --filter --server-option --negotiation-tip --strategy --strategy-option --sort", hosts: "--repo", operands: hostRemote, chooses: true},
	{names: "git", verb: "submodule add", value: "b", long: "--branch --name --depth --reference", operands: hostRemote},
	{names: "git", verb: "archive|request-pull|imap-send|send-email|credential", hosts: "--remote"},
	{names: "hg", verb: "clone|pull|push|incoming|in|outgoing|out|identify|id", operands: hostInURL, chooses: true},
	{names: "svn", verb: "checkout|co|update|up|export|import|ls|list|cat|log|info|commit|ci|copy|cp|switch|sw", operands: hostInURL, chooses: true},

	{
		names: "ssh autossh mosh", value: "BbcDEeFIiLlmOoPpQRSwM", ports: "-p", operands: hostFirst, port: 22,
		hosts: "-J -W", other: "-F -o",
	},
	{names: "ssh-copy-id ssh-keyscan", value: "iopftT", ports: "-p", operands: hostEvery, port: 22, other: "-f -o -F"},
	{names: "scp", value: "cDFiJlloPSX", ports: "-P", hosts: "-J", other: "-F -o", operands: hostPaths, port: 22},
	{names: "sftp", value: "aBbcDFiJloPRSsX", ports: "-P", hosts: "-J", other: "-F -o", operands: hostFirst, port: 22},
	{names: "rsync", value: "efTBM", long: "--rsh --filter --exclude --include --exclude-from --include-from --files-from --temp-dir --partial-dir --compare-dest --copy-dest --link-dest --backup-dir --suffix --chmod --chown --bwlimit --timeout --port --log-file --out-format --password-file --max-size --min-size --block-size --rsync-path", operands: hostPaths, port: 22},
	{names: "telnet rsh rlogin nc ncat netcat", value: "bcDeGgIiklmMoOpqsTVWwXxd", operands: hostFirst, hosts: "--proxy"},
	{names: "socat", operands: hostInURL, chooses: true},
	{names: "ftp lftp tnftp", value: "ePuop", ports: "-p", operands: hostFirst, port: 21},
	{names: "ping ping4 ping6 traceroute traceroute6 tracepath mtr fping arping nmap masscan", value: "cisWwIlMmpQStTfgqNPDeonv", operands: hostEvery},
	{names: "dig host nslookup whois drill delv kdig resolvectl", value: "bcfkptxyhp", operands: hostAtServer, chooses: true},
	{names: "openssl", verb: "s_client|s_time|ocsp|cmp", hosts: "-connect -host -url -server -proxy"},
	{names: "psql pg_dump pg_restore pg_dumpall createdb dropdb", value: "cdfFUvLoTtnNj", hosts: "-h --host", ports: "-p --port", port: 5432},
	{names: "mysql mysqldump mariadb mysqladmin mariadb-dump", value: "uDeS", hosts: "-h --host", ports: "-P --port", port: 3306},
	{names: "redis-cli valkey-cli", value: "anursi", hosts: "-h -u", ports: "-p", port: 6379},
	{names: "mongosh mongo mongodump mongorestore", hosts: "-h --host", ports: "-p --port", port: 27017},

	// Package managers ask the registries that they are set up for.
	{names: "npm pnpm yarn bun cnpm", alone: true, verb: "install|i|in|ci|clean-install|install-test|it|add|update|up|upgrade|outdated|audit|view|v|info|show|search|find|publish|unpublish|deprecate|dist-tag|owner|access|token|login|adduser|logout|whoami|ping|exec|x|dlx|create|init|dedupe|fetch|import|pack|profile|team|star|stars|global add", hosts: "--registry --proxy --https-proxy", operands: hostInURL, chooses: true},
	{names: "npx bunx pnpx uvx pipx", alone: true, hosts: "--registry --index-url --index --default-index", operands: hostInURL, chooses: true},
	{names: "pip pip3", verb: "install|download|wheel|search|index", hosts: "-i --index-url --extra-index-url -f --find-links --proxy --trusted-host", value: "rcetd", long: "--requirement --constraint --target --dest --platform --python-version --prefix --root --src --log --cache-dir", operands: hostInURL, chooses: true},
	{names: "uv", verb: "add|sync|lock|pip install|pip sync|pip compile|pip download|tool install|tool run|tool upgrade|python install|publish|self update", hosts: "-i --index-url --extra-index-url --index --default-index -f --find-links --publish-url", operands: hostInURL, chooses: true},
	{names: "poetry pdm hatch pipenv rye conda mamba micromamba", verb: "install|add|update|upgrade|lock|sync|publish|search|create", operands: hostInURL, chooses: true},
	{names: "twine", verb: "upload", hosts: "--repository-url", operands: hostInURL, chooses: true},
	{names: "go", verb: "get|install|mod download|mod tidy|mod vendor", operands: hostInURL, chooses: true},
	{names: "cargo", verb: "fetch|install|update|add|search|publish|vendor|generate-lockfile|login|logout|owner|yank|info|binstall", hosts: "--git --index", operands: hostInURL, chooses: true},
	{names: "rustup", verb: "update|install|toolchain install|toolchain add|component add|target add|self update|check", operands: hostInURL, chooses: true},
	{names: "gem bundle bundler", verb: "install|update|fetch|push|search|outdated|add|yank|owner|signin", hosts: "-s --source --clear-sources", operands: hostInURL, chooses: true},
	{names: "composer", verb: "install|require|update|create-project|global|search|show|outdated|audit|self-update", operands: hostInURL, chooses: true},
	{names: "mvn gradle gradlew sbt lein mix rebar3 cabal stack dotnet nuget swift pod carthage flutter dart", verb: "deploy|restore|publish|deps.get|hex.publish|get|pub get|pub add|pub upgrade|pub publish|dependency:resolve|add|fetch|update|bootstrap|resolve", operands: hostInURL, chooses: true},
	{names: "apt apt-get aptitude dnf yum zypper apk pacman brew snap flatpak port nix nix-env nix-shell guix emerge xbps-install pkg", verb: "update|install|upgrade|dist-upgrade|full-upgrade|build-dep|download|source|add|fetch|tap|refresh|makecache|develop|pull", operands: hostInURL, chooses: true},
	{names: "docker podman nerdctl buildah skopeo crane oras", verb: "pull|push|login|image pull|image push|copy|manifest inspect|search", value: "u", long: "--platform --username --password --tls-verify --creds --authfile", operands: hostImage, chooses: true},
	{names: "docker-compose podman-compose", verb: "pull|push|up|build", operands: hostInURL, chooses: true},

	// They act with an account of the person's.
	{names: "gh glab hub", verb: "*", hosts: "--hostname -h", operands: hostInURL, chooses: true},
	{names: "kubectl oc helm", verb: "*", hosts: "-s --server", operands: hostInURL, chooses: true},
	{names: "aws gcloud gsutil az doctl heroku fly flyctl vercel netlify wrangler firebase railway supabase oci ibmcloud linode-cli hcloud scw rclone s3cmd", verb: "*", hosts: "--endpoint-url", operands: hostInURL, chooses: true},
	{names: "terraform tofu terragrunt pulumi cdk packer vault consul nomad", verb: "init|plan|apply|destroy|refresh|import|login|up|preview|deploy|diff|read|write|kv", operands: hostInURL, chooses: true},
	{names: "ansible ansible-playbook ansible-pull ansible-galaxy", verb: "*", operands: hostInURL, chooses: true},
	{names: "mail mailx sendmail mutt msmtp swaks", verb: "*", hosts: "--server -s", operands: hostInURL, chooses: true},
}

var netTable = sync.OnceValue(func() map[string][]*netRow {
	table := map[string][]*netRow{}
	for i := range netRows {
		eachName(netRows[i].names, func(name string) { table[name] = append(table[name], &netRows[i]) })
	}
	return table
})

// schemePorts are the ports of schemes: the IANA registry of services.
var schemePorts = map[string]int{
	"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990, "ssh": 22, "sftp": 22, "scp": 22, "git+ssh": 22, "ssh+git": 22, "svn+ssh": 22,
	"git": 9418, "git+git": 9418, "git+http": 80, "git+https": 443, "hg+https": 443, "hg+http": 80, "svn": 3690, "svn+https": 443, "rsync": 873, "telnet": 23,
	"ldap": 389, "ldaps": 636, "smtp": 25, "smtps": 465, "imap": 143, "imaps": 993, "pop3": 110, "pop3s": 995, "mqtt": 1883, "mqtts": 8883,
	"dict": 2628, "gopher": 70, "rtsp": 554, "tftp": 69, "smb": 445, "nfs": 2049,
	"postgres": 5432, "postgresql": 5432, "mysql": 3306, "redis": 6379, "rediss": 6379, "mongodb": 27017, "amqp": 5672, "amqps": 5671,
	"socks": 1080, "socks4": 1080, "socks4a": 1080, "socks5": 1080, "socks5h": 1080,
}

// unknownHost is the resource of a network target of which the host is not
// known.
const unknownHost = "*"

// connects adds the connections that a call makes, as far as its words say.
// Its other targets are the items from the first on.
// What a server redirects to, and what configuration and code name, they do
// not say.
func (f *frame) connects(base string, c *command, st *state, first int) {
	for _, it := range f.j.items[min(first, len(f.j.items)):] {
		if it.Action == Exec && it.risk == riskSafe {
			return // proven read-only, which no use of the network is
		}
	}
	args := c.args()
	if code, ok := interpreterCode(base); ok && strings.HasPrefix(code, "-c -m") && len(args) > 1 && args[0].literal() && args[0].text == "-m" && args[1].literal() {
		base, args = args[1].text, args[2:] // python3 -m pip
	}
	rows := netTable()[base]
	if rows == nil && strings.HasPrefix(base, "pip3.") {
		rows = netTable()["pip3"]
	}
	for _, row := range rows {
		if rest, ok := row.rest(base, args); ok {
			n := netCall{f: f, c: c, st: st, row: row, port: row.port, first: len(f.j.items)}
			n.run(rest)
			return
		}
	}
	if rows == nil && specTable()[base] == nil && wrapperFor(base) == nil && !breakers[base] {
		// A program of which nothing is known.
		n := netCall{f: f, c: c, st: st, row: &netRow{}, first: len(f.j.items)}
		for _, w := range args {
			if k := strings.Index(w.text[:w.fixed], "://"); k > 0 && schemePorts[w.text[:k]] != 0 {
				n.url(w)
			}
		}
	}
}

// rest are the words behind the verb of the row; false when it is another.
func (row *netRow) rest(base string, args []word) ([]word, bool) {
	if row.verb == "" {
		return args, true
	}
	at := [3]int{}
	n := 0
	values := globalValues[base]
	for i := 0; i < len(args) && n < len(at); i++ {
		if args[i].fixed > 0 && args[i].text[0] == '-' {
			if n == 0 && listed(values, args[i].text) {
				i++
			}
			continue
		}
		at[n] = i
		n++
	}
	if n == 0 {
		return args, row.alone && !hasFlag(args, "--version --help -v -h -V")
	}
	for alt := range strings.SplitSeq(row.verb, "|") {
		k, ok := 0, true
		for w := range strings.SplitSeq(alt, " ") {
			ok = ok && k < n && (w == "*" || args[at[k]].text == w)
			k++
		}
		if ok {
			return args[at[k-1]+1:], true
		}
	}
	return nil, false
}

// netCall is a call that is matched against a netRow.
type netCall struct {
	f     *frame
	c     *command
	st    *state
	row   *netRow
	port  int
	found bool // a host was named, or what stands in its place
	first int  // of the items of this call
}

func (n *netCall) run(args []word) {
	row := n.row
	var operands, hosts []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		if w.mayBeOption() && !w.flagKnown() && w.kind != literalWord {
			operands = append(operands, w)
			continue
		}
		if !w.mayBeOption() || w.text == "-" {
			operands = append(operands, w)
			continue
		}
		if w.text == "--" {
			operands = append(operands, args[i+1:]...)
			break
		}
		name, value, has := w.text, word{}, false
		if k := strings.IndexByte(w.text, '='); k > 0 && strings.HasPrefix(w.text, "--") && w.fixed > k {
			name, value, has = w.text[:k], w.from(k+1), true
		} else if !strings.HasPrefix(w.text, "--") && !listed(row.hosts, w.text) {
			// A cluster: the first letter that takes a value takes the rest.
			for k := 1; k < len(w.text) && k < w.fixed; k++ {
				name = shortName(w.text[k])
				if takes := strings.IndexByte(row.value, w.text[k]) >= 0 || row.takes(name); !takes {
					continue
				}
				if k+1 < len(w.text) {
					value, has = w.from(k+1), true
				}
				break
			}
		}
		short := len(name) == 2 && strings.IndexByte(row.value, name[1]) >= 0
		if !has && (short || row.takes(name)) && i+1 < len(args) {
			i++
			value, has = args[i], true
		}
		switch {
		case !has:
		case listed(row.hosts, name):
			for part := range strings.SplitSeq(value.text, ",") { // ssh -J has several
				p := value
				if p.literal() {
					p = literal(part)
				}
				hosts = append(hosts, p)
			}
		case listed(row.ports, name):
			port, ok := portNumber(value.text)
			if n.port = 0; ok && value.literal() {
				n.port = port
			}
		}
		if listed(row.other, name) {
			n.unknown(w)
		}
	}
	if n.c.appended {
		operands = append(operands, word{text: "…", kind: dynamicWord, split: true})
	}
	for _, w := range hosts {
		n.host(w)
	}
	n.operands(operands)
	if row.chooses && !n.found {
		n.add(unknownHost, "connects to the hosts that it is set up for", false)
	}
}

// takes reports an option with a value.
func (row *netRow) takes(name string) bool {
	return listed(row.long, name) || listed(row.hosts, name) || listed(row.ports, name) || listed(row.other, name)
}

func (n *netCall) operands(list []word) {
	for i, w := range list {
		if w.kind == dynamicWord && w.fixed == 0 {
			if n.row.operands != hostInURL && n.row.operands != hostPaths || w.split {
				n.unknown(w)
			}
			continue
		}
		inURL := strings.Contains(w.text[:w.fixed], "://")
		switch n.row.operands {
		case hostInURL:
			if inURL {
				n.url(w)
			}
		case hostURLs:
			n.url(w)
		case hostURL:
			if strings.Trim(w.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
				continue
			}
			n.url(w)
			return
		case hostFirst:
			if i+1 < len(list) && n.row.port == 0 && list[1].literal() {
				n.port, _ = portNumber(list[1].text)
			}
			n.host(w)
			return
		case hostEvery:
			n.host(w)
		case hostRemote:
			n.remote(w, inURL)
			return
		case hostPaths:
			switch k := strings.IndexByte(w.text, ':'); {
			case inURL:
				n.url(w)
			case k > 0 && !strings.Contains(w.text[:k], "/"):
				n.before(w, k, strings.HasPrefix(w.text[k:], "::"))
			}
		case hostImage:
			n.image(w)
			return
		case hostAtServer:
			if strings.HasPrefix(w.text, "@") {
				n.port = 53
				n.host(w.from(1))
			}
		}
	}
}

// remote is a repository: git-clone(1), "GIT URLS".
func (n *netCall) remote(w word, inURL bool) {
	k := strings.IndexByte(w.text, ':')
	switch {
	case inURL:
		n.url(w)
	case strings.HasPrefix(w.text, ".") || strings.HasPrefix(w.text, "/"):
		n.found = true // a folder
	case k > 0 && !strings.Contains(w.text[:k], "/") && !strings.HasPrefix(w.text[k:], "::"):
		n.port = 22
		n.before(w, k, false)
	case k > 0:
		n.unknown(w)
	case strings.Contains(w.text, "/"):
		n.found = true
	}
}

// before is a host in front of the colon at k, with the user of it.
func (n *netCall) before(w word, k int, module bool) {
	if module {
		n.port = 873 // rsync(1)
	}
	if k >= w.fixed {
		n.unknown(w)
		return
	}
	_, host := cutUser(w.text[:k])
	n.addHost(host, "", w)
}

// image is an image with its registry: the part before the first slash, where
// it holds a dot or a colon or is localhost.
func (n *netCall) image(w word) {
	first, _, ok := strings.Cut(w.text[:w.fixed], "/")
	if k := strings.Index(w.text, "://"); k > 0 { // skopeo
		first, _, ok = strings.Cut(w.text[k+3:max(w.fixed, k+3)], "/")
	}
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		host, port, _ := cutPort(first)
		if n.port = 443; port != "" {
			n.port = 0
		}
		n.addHost(host, port, w)
	}
}

// host is [USER@]HOST, HOST:PORT or a URL.
func (n *netCall) host(w word) {
	if strings.Contains(w.text[:w.fixed], "://") {
		n.url(w)
		return
	}
	if w.kind != literalWord {
		n.unknown(w)
		return
	}
	if strings.HasPrefix(w.text, "/") {
		return // the socket of a server
	}
	_, host := cutUser(w.text)
	port := ""
	if h, p, ok := cutPort(host); ok {
		host, port = h, p
	}
	n.addHost(host, port, w)
}

// url is a URL: RFC 3986. What reads it can differ on what is not in that
// form, which makes the host unknown.
func (n *netCall) url(w word) {
	if w.kind == globWord { // it stays as it is where no file matches
		n.unknown(w)
		w = literal(w.text)
	}
	known := w.text[:w.fixed]
	rest, port := known, n.port
	if k := strings.Index(known, "://"); k >= 0 {
		scheme := strings.ToLower(known[:k])
		if scheme == "file" {
			n.found = true
			if at := strings.IndexByte(w.text[k+3:], '/'); at >= 0 {
				n.f.readPath(n.c, w.from(k+3+at), n.st, false)
			}
			return
		}
		rest, port = known[k+3:], schemePorts[scheme]
	} else if w.text == "-" {
		return
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 && w.kind != literalWord {
		n.unknown(w) // what follows may go on with the name, or make it a user's
		return
	}
	if end >= 0 {
		rest = rest[:end]
	}
	if strings.Count(rest, "@") > 1 || strings.ContainsAny(rest, "\\ \t\r\n") {
		n.unknown(w) // where the host begins is read in more than one way
		return
	}
	_, host := cutUser(rest)
	digits := ""
	if h, p, ok := cutPort(host); ok {
		host, digits = h, p
	}
	if host == "" && digits != "" {
		host = "localhost" // of HTTPie
	}
	n.port = port
	n.addHost(host, digits, w)
	n.port = n.row.port
}

// cutUser separates what stands before the last @.
func cutUser(s string) (user, host string) {
	k := strings.LastIndexByte(s, '@')
	return s[:max(k, 0)], s[k+1:]
}

func (n *netCall) addHost(host, digits string, w word) {
	h, err := ParseHost(host)
	if err != nil && strings.Count(host, ":") > 1 {
		h, err = ParseHost("[" + host + "]")
	}
	port := n.port
	if digits != "" {
		var ok bool
		if port, ok = portNumber(digits); !ok {
			n.unknown(w)
			return
		}
	}
	if err != nil {
		n.unknown(w)
		return
	}
	n.add(h.WithPort(port), "connects to a host", false)
}

// unknown is a host that is known only when it runs, or that is read in more
// than one way.
func (n *netCall) unknown(w word) { n.add(unknownHost, "the host in "+w.text+" is not certain", true) }

func (n *netCall) add(resource, detail string, dynamic bool) {
	n.found = true
	items := n.f.j.items
	for _, it := range items[min(n.first, len(items)):] {
		if it.Action == NetworkTo && it.Resource == resource {
			return
		}
	}
	t := Target{Action: NetworkTo, Resource: resource, Reason: NetworkAccess, Detail: detail, Dynamic: dynamic}
	n.f.add(n.c, item{Target: t, risk: riskUnproven, by: n.f.j.newTexts(n.c.argv), words: n.c.argv})
}
