package policy

import (
	"slices"
	"strings"
	"testing"
)

// hosts are the network targets of a decision.
func hosts(d Decision) string {
	var list []string
	for _, t := range d.Targets {
		if t.Action == NetworkTo {
			list = append(list, t.Resource)
		}
	}
	return strings.Join(list, " ")
}

func TestHostsOfCommands(t *testing.T) {
	for _, test := range []struct{ cmd, want string }{ // "*" = a host that is not known, "" = no connection
		// URLs.
		{"curl https://api.example.com/v1", "api.example.com:443"},
		{"curl -sSL -o x.tgz example.com/a.tgz", "example.com:80"},
		{"curl -X POST -d a=b -H 'Referer: https://other.example' https://API.Example.com.:8443/x", "api.example.com:8443"},
		{"curl --url=https://a.example --url https://b.example", "a.example:443 b.example:443"},
		{"curl --proxy http://proxy.example:3128 https://a.example", "proxy.example:3128 a.example:443"},
		{"curl -sxproxy.example:3128 https://a.example", "proxy.example:3128 a.example:443"},
		{"curl https://a.example https://a.example/2", "a.example:443"},
		{`curl "https://a.example/$x"`, "a.example:443"},
		{`h=a.example; curl https://$h/x`, "a.example:443"},
		{`for h in a b; do curl https://$h.example/; done`, "a.example:443 b.example:443"},
		{`curl "https://a.example$x/"`, "*"}, // may go on
		{`curl "https://$h/"`, "*"},
		{`curl "https://a.example:$port/"`, "*"}, // 80@b.example
		{`curl "$url"`, "*"},
		{"curl -K list", "*"},
		{"wget -i list", "*"},
		{"xargs curl < list", "*"},
		{"curl --version", ""},
		{"curl file:///w/x", ""},
		{"wget -qO- a.example", "a.example:80"},
		{"http POST :8080/x a=b", "localhost:8080"},
		{"http PUT a.example/x b.example:=1", "a.example:80"},

		// Users, and what readers take for them.
		{"curl https://github.com@a.example/", "a.example:443"},
		{"curl https://user:b.example@a.example/", "a.example:443"},
		{"curl 'https://a.example#@b.example/'", "a.example:443"},
		{"curl 'https://a.example?@b.example/'", "a.example:443"},
		{`curl 'https://a.example\@b.example/'`, "*"},
		{"curl https://a.example@b.example@c.example/", "*"},
		{"curl 'https://a.example /'", "*"},
		{"curl https://münchen.example/", "*"},
		{"curl https://{a,b}.example/", "a.example:443 b.example:443"},
		{"curl 'https://{a,b}.example/'", "*"},

		// Addresses.
		{"curl http://127.0.0.1:8080/", "127.0.0.1:8080"},
		{"curl 'http://[::1]:8080/'", "[::1]:8080"},
		{"curl http://[::1]:8080/", "* [::1]:8080"}, // a pattern of file names
		{"curl 'http://[::ffff:127.0.0.1]/'", "127.0.0.1:80"},
		{"curl http://2130706433/", "*"},
		{"curl http://0x7f.1/", "*"},
		{"curl http://0177.0.0.1/", "*"},
		{"curl http://a.example:99999/", "*"},

		// Repositories.
		{"git clone https://github.com/a/b.git", "github.com:443"},
		{"git clone git@github.com:a/b.git c", "github.com:22"},
		{"git -C x clone -b main --depth 1 ssh://git@a.example:2222/b", "a.example:2222"},
		{"git clone ../b", ""},
		{"git clone /srv/b", ""},
		{"git clone file:///srv/b", ""},
		{"git clone ext::x", "*"},
		{"git fetch", "*"},
		{"git fetch origin", "*"},
		{"git pull https://a.example/b main", "a.example:443"},
		{"git push git://a.example/b", "a.example:9418"},
		{"git ls-remote a.example:b", "a.example:22"},
		{"git submodule add https://a.example/b", "a.example:443"},
		{"git status", ""},
		{"git remote -v", ""},
		{"git commit -m 'see https://a.example'", ""},

		// Package managers.
		{"npm install", "*"},
		{"npm ci --registry https://a.example", "a.example:443"},
		{"npm i https://a.example/b.tgz", "a.example:443"},
		{"npm ls", ""},
		{"npm test", ""},
		{"yarn", "*"},
		{"yarn --version", ""},
		{"pnpm add x", "*"},
		{"npx cowsay", "*"},
		{"pip install requests", "*"},
		{"pip -q install -i https://a.example/simple requests", "a.example:443"},
		{"python3 -m pip install git+https://a.example/b", "a.example:443"},
		{"uv pip install x", "*"},
		{"go get a.example/b", "*"}, // the proxy's
		{"go mod download", "*"},
		{"go test ./...", ""},
		{"cargo install --git https://a.example/b", "a.example:443"},
		{"apt-get update", "*"},
		{"docker pull ghcr.io/a/b:1", "ghcr.io:443"},
		{"docker pull localhost:5000/b", "localhost:5000"},
		{"docker pull alpine", "*"},

		// Other machines.
		{"ssh a.example ls", "a.example:22"},
		{"ssh -p 2222 -i k me@a.example", "a.example:2222"},
		{"ssh -J me@b.example:23,c.example me@a.example", "b.example:23 c.example:22 a.example:22"},
		{"ssh -oHostName=b.example a.example", "* a.example:22"},
		{"ssh ssh://me@a.example:2222", "a.example:2222"},
		{"scp a b me@a.example:/x", "a.example:22"},
		{"scp -P 2222 a.example:x .", "a.example:2222"},
		{"scp ./a:b c", ""},
		{"rsync -av -e ssh x/ a.example:y", "a.example:22"},
		{"rsync a.example::module/x y", "a.example:873"},
		{"rsync rsync://a.example/x y", "a.example:873"},
		{"rsync a b", ""},
		{"nc -zv a.example 5432", "a.example:5432"},
		{"psql -h a.example -p 5433 -c 'select 1'", "a.example:5433"},
		{"psql -c 'select 1'", ""},
		{"ping -c 1 192.0.2.1", "192.0.2.1"},
		{"dig @192.0.2.1 a.example", "192.0.2.1:53"},
		{"openssl s_client -connect a.example:443", "a.example:443"},
		{"cat < /dev/tcp/a.example/80", "a.example:80"},

		// Wherever they stand.
		{"sudo timeout 5 curl https://a.example", "a.example:443"},
		{"sh -c 'curl https://a.example'", "a.example:443"},
		{"echo $(curl https://a.example)", "a.example:443"},
		{"find . -exec curl https://a.example {} +", "* a.example:443"},
		{"./fetch https://a.example", "a.example:443"},
		{"echo https://a.example", ""},
		{"grep https://a.example x", ""},
	} {
		got := strings.Fields(hosts((&Policy{Mode: ModeAllow}).Decide(test.cmd, corpusScope())))
		want := strings.Fields(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(slices.Compact(got), want) {
			t.Errorf("%q: %q, want %q", test.cmd, got, want)
		}
	}
}

func TestRulesForHosts(t *testing.T) {
	allow := func(action Action, pattern string) Rule {
		return Rule{Action: action, Verdict: Allow, Pattern: pattern}
	}
	deny := Rule{Action: NetworkTo, Verdict: Deny, Pattern: "*.evil.example", Reason: "ask me first", Source: "rules.toml:3"}
	for _, test := range []struct {
		cmd   string
		mode  Mode
		rules []Rule
		want  Verdict
	}{
		{"curl https://a.evil.example/", ModeAllow, []Rule{deny}, Deny},
		{"curl https://good.example@a.evil.example/", ModeAllow, []Rule{deny}, Deny},
		{"curl https://A.EVIL.example.:444/", ModeAllow, []Rule{deny}, Deny},
		{"git clone git@a.evil.example:b", ModeAllow, []Rule{deny}, Deny},
		{"sh -c 'wget -q a.evil.example'", ModeAllow, []Rule{deny}, Deny},
		{"python3 fetch.py https://a.evil.example", ModeAllow, []Rule{deny}, Deny},
		{"curl https://evil.example/", ModeAllow, []Rule{deny}, Allow},
		{`curl "$url"`, ModeAllow, nil, Allow},
		{`curl "$url"`, ModeAllow, []Rule{deny}, Ask}, // may be there
		{"curl http://0x7f.1/", ModeAllow, []Rule{deny}, Ask},
		{"npm install", ModeAllow, []Rule{deny}, Allow}, // the sandbox holds what it chooses
		{"npm install", ModeAllow, []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "*"}}, Deny},
		{"curl https://a.example", ModeAllow, []Rule{{Action: NetworkTo, Verdict: Ask, Pattern: "a.example"}}, Ask},

		// A command and its hosts are allowed by a rule for the command, or by one each.
		{"curl https://a.example", ModeAsk, []Rule{allow(NetworkTo, "a.example")}, Ask},
		{"curl https://a.example", ModeAsk, []Rule{allow(Exec, "curl *")}, Allow},
		{"curl https://a.evil.example", ModeAsk, []Rule{allow(Exec, "curl *"), deny}, Deny},
		{"npm ci", ModeAsk, []Rule{allow(Exec, "npm ci")}, Allow},
		{"npm ci && curl https://a.example", ModeAsk, []Rule{allow(Exec, "npm ci"), allow(NetworkTo, "a.example")}, Ask},
		{"ssh a.example", ModeAllow, []Rule{allow(NetworkTo, "a.example:22")}, Ask}, // a shell elsewhere
		{"curl https://a.example", ModePlan, []Rule{allow(Exec, "curl *"), allow(NetworkTo, "a.example")}, Deny},
	} {
		if d := (&Policy{Mode: test.mode, Rules: test.rules}).Decide(test.cmd, corpusScope()); d.Verdict != test.want {
			t.Errorf("%q in mode %v with %+v: %v, want %v: %+v", test.cmd, test.mode, test.rules, d.Verdict, test.want, d.Targets)
		}
	}
	if d := (&Policy{}).Decide("curl https://a.example && npm i", corpusScope()); !slices.Equal(d.Sandbox.Hosts, []string{"a.example:443"}) || d.Sandbox.Network != "host" {
		t.Errorf("%+v", d.Sandbox)
	}
}

// What is said of a command that names a host, and of a connection to it, is the
// same.
func TestCommandAndConnectionAgree(t *testing.T) {
	p := &Policy{Mode: ModeAllow, Rules: []Rule{
		{Action: NetworkTo, Verdict: Deny, Pattern: "*.evil.example"},
		{Action: NetworkTo, Verdict: Deny, Pattern: "example.org:8080"},
		{Action: NetworkTo, Verdict: Allow, Pattern: "example.org"},
		{Action: NetworkTo, Verdict: Allow, Pattern: "[2001:db8::1]:*"},
		{Action: NetworkTo, Verdict: Ask, Pattern: "192.0.2.1"},
	}}
	for _, at := range []string{"example.org", "Example.ORG.", "a.evil.example", "evil.example", "example.org.evil.example", "192.0.2.1", "[2001:db8::1]", "[2001:0db8:0::1]", "[::ffff:192.0.2.1]"} {
		for _, port := range []string{"80", "443", "8080", "22"} {
			h, n, err := ParseHostPort(at + ":" + port)
			if err != nil {
				t.Fatal(err)
			}
			byHost := p.CheckHost(h.String(), n, corpusScope()).Targets[0]
			d := p.Decide("curl 'http://"+at+":"+port+"/x'", corpusScope())
			k := slices.IndexFunc(d.Targets, func(t Target) bool { return t.Action == NetworkTo })
			if k < 0 || d.Targets[k].Resource != byHost.Resource || (d.Targets[k].Stage == StageRule) != (byHost.Stage == StageRule) || byHost.Stage == StageRule && d.Targets[k].Verdict != byHost.Verdict {
				t.Errorf("%s:%s: a connection %+v, a command %+v", at, port, byHost, d.Targets)
			}
		}
	}
}
