package policy

import (
	"path"
	"strings"
	"sync"
)

// spec is a program that is read-only with the options listed and no others.
// A row is an allow-list: what is not on it asks.
type spec struct {
	names string // blank-separated
	options
	args   argKind
	max    int    // operands at most; 0 = any, none = -1
	traits trait  //
	need   string // one of these options must be there
	unless string // with one of these options the first operand is a path too
	paths  string // options whose value is a path that is read
	check  func(*specCall) (Reason, string)
}

const none = -1

type argKind uint8

const (
	argPaths     argKind = iota // every operand is a path that is read
	argText                     // no operand is a path
	argFirstText                // the first is a pattern or a program, the rest are paths
)

type trait uint8

const (
	cwd       trait = 1 << iota // without a path it reads the current directory
	anyOption                   // no option of the program writes, runs or reads elsewhere: unknown words are harmless
	lists                       // writes names of files that it was given or found
	filters                     // writes a part of the lines that it reads
	exact                       // options do not cluster
	mildly                      // no option writes or runs anything, some read files: names of files may follow
	stdinToo                    // reads standard input though no operand is a path
)

// specCall is a call that is matched against a spec.
type specCall struct {
	f        *frame
	c        *command
	st       *state
	opts     []option
	operands []word
}

func (s *specCall) has(names string) bool {
	for _, o := range s.opts {
		if listed(names, o.name) {
			return true
		}
	}
	return false
}

// specs, by the manuals of GNU coreutils 9, util-linux, procps-ng and of the
// programs themselves. Options that write, run something, follow a file without
// end or read names or programs from a file are left out on purpose.
var specs = []spec{
	// Reading files.
	{names: "cat gcat", options: options{short: "AbeEnstTuv", long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"}, traits: mildly},
	{names: "tac gtac", options: options{short: "br", value: "s", long: "before regex separator="}, traits: mildly},
	{names: "head ghead", options: options{short: "qvz0123456789", value: "nc", long: "bytes= lines= quiet silent verbose zero-terminated"}, traits: mildly | filters},
	{names: "tail gtail", options: options{short: "qvzr0123456789", value: "ncb", long: "bytes= lines= quiet silent verbose zero-terminated"}, traits: mildly | filters},
	{names: "nl", options: options{short: "p", value: "bdfhilnsvw", long: "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines= number-format= no-renumber number-separator= starting-line-number= number-width="}, traits: mildly},
	{names: "od", options: options{short: "abcdfhilosvxBDFHIOX", value: "AjNt", glued: "Sw", long: "address-radix= skip-bytes= read-bytes= format= output-duplicates width? strings? endian="}, traits: mildly},
	{names: "hexdump hd", options: options{short: "bcCdovxX", value: "ens", long: "one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex no-squeezing length= skip="}, traits: mildly},
	{names: "xxd", options: options{short: "abCdeEipu", value: "cglnos", words: "-ps -plain"}, traits: exact, max: 1},
	{names: "strings", options: options{short: "afowd0123456789", value: "nets", long: "all print-file-name bytes= radix= encoding= include-all-whitespace output-separator= data"}, check: noResponseFile},
	{names: "base64 base32 basenc", options: options{short: "diD", value: "w", long: "decode ignore-garbage wrap= base64 base64url base32 base32hex base16 z85"}, max: 1, traits: mildly},
	{names: "zcat bzcat xzcat zstdcat lz4cat gzcat"},
	{names: "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd", options: options{short: "lvdckqt123456789", long: "list verbose decompress stdout to-stdout keep quiet test"}, need: "-l --list -c --stdout --to-stdout -t --test", check: keepsFiles},
	{names: "unzip", options: options{short: "lvqZ1"}, need: "-l -v -Z", max: 0},
	{names: "zipinfo", options: options{short: "12slmvhtzT"}},
	{names: "tar gtar bsdtar", check: tarList, traits: exact | stdinToo, args: argText},

	// Facts about files.
	{names: "ls gls dir vdir", options: options{short: "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1", value: "ITw", long: "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format= full-time group-directories-first no-group human-readable si dereference-command-line dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero help version"}, traits: cwd | mildly | lists, paths: "-I -T -w"}, // BSD takes no value there
	{names: "eza exa", options: options{short: "1laAdDfFGghHiIlmnOrRsSTuUxX@", value: "LIst", long: "oneline long grid across recurse tree classify? color= colour= icons? all list-dirs only-dirs only-files level= reverse sort= group-directories-first git-ignore ignore-glob= binary bytes group header links inode modified size blocks time= accessed created changed no-permissions no-filesize no-user no-time time-style= git"}, traits: cwd},
	{names: "stat gstat", options: options{short: "Lftnqrsx", value: "c", long: "dereference file-system format= printf= terse cached="}, traits: mildly},
	{names: "du gdu", options: options{short: "0abcDhHklLmsSxP", value: "Bdt", long: "null all apparent-size block-size= bytes total dereference-args max-depth= human-readable inodes count-links dereference no-dereference separate-dirs si summarize threshold= time? time-style= exclude= one-file-system"}, traits: cwd | mildly},
	{names: "df gdf", options: options{short: "ahHiklmPTv", value: "Btx", long: "all block-size= human-readable si inodes local portability print-type type= exclude-type= total output? no-sync"}, traits: mildly},
	{names: "file", options: options{short: "bikLhrN0EIp", value: "F", long: "brief mime mime-type mime-encoding dereference no-dereference keep-going raw no-pad print0 separator= extension preserve-date"}},
	{names: "wc gwc", options: options{short: "clmwL", long: "bytes chars lines words max-line-length total="}, traits: mildly},
	{names: "realpath grealpath", options: options{short: "eEmLPsqz", long: "canonicalize-existing canonicalize-missing logical physical strip no-symlinks quiet zero relative-to= relative-base="}, args: argText, traits: anyOption | lists},
	{names: "readlink greadlink", options: options{short: "efmnqsvz", long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"}, args: argText, traits: anyOption},
	{names: "basename gbasename", options: options{short: "az", value: "s", long: "multiple suffix= zero"}, args: argText, traits: anyOption},
	{names: "dirname gdirname", options: options{short: "z", long: "zero"}, args: argText, traits: anyOption},
	{names: "tree", options: options{short: "adfilxNqQpugshDFrtUSAnCJX", value: "LPIHT", long: "noreport nolinks dirsfirst filesfirst sort? prune du si inodes device timefmt= matchdirs ignore-case gitignore filelimit= charset= metafirst"}, traits: cwd},
	{names: "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", options: options{short: "btz", value: "l", long: "binary text tag zero length="}, traits: mildly},
	{names: "cksum", options: options{value: "al", long: "algorithm= untagged tag length= zero base64 raw"}, traits: mildly},
	{names: "sum", options: options{short: "rs"}, traits: mildly},
	{names: "shasum", options: options{short: "bt0U", value: "a", long: "algorithm= binary text UNIVERSAL"}},
	{names: "md5", options: options{short: "nqr", value: "s"}},
	{names: "cmp", options: options{short: "bls", value: "in", long: "print-bytes bytes= ignore-initial= verbose quiet silent"}, max: 4},
	{names: "diff", options: options{short: "abBcdeEiInNpqrstTuwyZ0123456789", value: "CFUWxLI", long: "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case exclude= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal horizon-lines= speed-large-files color? palette="}, max: 2},
	{names: "comm", options: options{short: "123iz", long: "check-order nocheck-order output-delimiter= total zero-terminated"}, max: 2, traits: mildly},
	{names: "size", options: options{short: "ABGdoxt", long: "format= radix= common totals"}, check: noResponseFile},
	{names: "readelf", options: options{short: "ahlSgtesndVADIruWTc", long: "all file-header program-headers segments section-headers sections syms symbols dyn-syms notes relocs dynamic version-info arch-specific wide headers"}, check: noResponseFile},
	{names: "nm", options: options{short: "aAgnoprsuvCDSBP", long: "demangle? dynamic extern-only print-size size-sort numeric-sort no-sort reverse-sort undefined-only defined-only"}, check: noResponseFile},

	// Searching.
	{
		names: "grep ggrep egrep fgrep", options: options{short: "EFGPivwxyclLqsohHnbTUzZaIrR0123456789", value: "eABCmdD", long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp= ignore-case no-ignore-case invert-match word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= before-context= context= text binary-files= devices= directories= exclude= exclude-dir= include= recursive dereference-recursive line-buffered null-data binary"},
		args: argFirstText, unless: "-e --regexp", traits: mildly, check: grepCheck,
	},
	{
		names: "rg ripgrep", options: options{short: "acFHhIiLlNnoPpqSsUuVvwx0.", value: "ABCeEgjMmrTtd", long: "after-context= before-context= context= regexp= glob= iglob= type= type-not= type-add= type-clear= type-list max-count= max-depth= max-columns= max-columns-preview max-filesize= replace= sort= sortr= threads= encoding= color= colors= context-separator= field-context-separator= field-match-separator= path-separator= files files-with-matches files-without-match count count-matches case-sensitive ignore-case smart-case fixed-strings word-regexp line-regexp invert-match line-number no-line-number column no-column heading no-heading hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-global no-ignore-dot no-ignore-files no-ignore-exclude only-matching passthru pcre2 no-pcre2 multiline no-multiline multiline-dotall null null-data quiet stats text trim unrestricted vimgrep with-filename no-filename follow json crlf engine= auto-hybrid-regex glob-case-insensitive one-file-system no-messages no-config no-require-git block-buffered line-buffered byte-offset include-zero pretty binary stop-on-nonmatch"},
		args: argFirstText, unless: "-e --regexp --files --type-list", traits: cwd, check: rgCheck,
	},
	{
		names: "fd fdfind", options: options{short: "HIusiFpLa0g1q", value: "teEdcSoj", long: "hidden no-hidden no-ignore ignore no-ignore-vcs no-ignore-parent unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path relative-path follow no-follow full-path print0 max-depth= min-depth= exact-depth= prune type= extension= exclude= size= changed-within= changed-before= newer= older= owner= color= threads= max-results= quiet and= one-file-system strip-cwd-prefix path-separator="},
		args: argFirstText, traits: cwd | lists,
	},
	{names: "which", options: options{short: "as", long: "all"}, args: argText, traits: anyOption},
	{names: "whereis", options: options{short: "bmsul"}, args: argText},

	// Text from files or standard input to standard output.
	{names: "sort gsort", options: options{short: "bdfghiMnRrVcCmsuz", value: "kt", long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? merge key= stable field-separator= unique zero-terminated parallel= debug"}, traits: filters},
	{names: "uniq guniq", options: options{short: "cdDuiz", value: "fsw", long: "count repeated all-repeated? group? unique ignore-case skip-fields= skip-chars= check-chars= zero-terminated"}, max: 1},
	{names: "cut gcut", options: options{short: "nsz", value: "bcdf", long: "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated"}, traits: mildly},
	{names: "paste gpaste", options: options{short: "sz", value: "d", long: "serial delimiters= zero-terminated"}, traits: mildly},
	{names: "join", options: options{short: "iz", value: "aejtov12", long: "ignore-case header check-order nocheck-order zero-terminated"}, max: 2, traits: mildly},
	{names: "tr gtr", options: options{short: "cCdst", long: "complement delete squeeze-repeats truncate-set1"}, args: argText, traits: anyOption | stdinToo},
	{names: "column", options: options{short: "txdeLJ", value: "socNHRTWO", long: "table separator= output-separator= output-width= columns= fillrows json table-name= table-columns= table-columns-limit= table-right= table-hide= table-truncate= table-wrap= table-order= table-noextreme= table-noheadings table-empty-lines keep-empty-lines tree= tree-id= tree-parent="}, traits: mildly},
	{names: "fold", options: options{short: "bs0123456789", value: "w", long: "bytes spaces width="}, traits: mildly},
	{names: "fmt", options: options{short: "cstu0123456789", value: "wpg", long: "crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal="}, traits: mildly},
	{names: "expand unexpand", options: options{short: "ia", value: "t", long: "initial all first-only tabs="}, traits: mildly},
	{names: "rev", traits: mildly},
	{names: "shuf", options: options{short: "erz", value: "in", long: "echo input-range= head-count= repeat zero-terminated"}},
	{names: "tsort", traits: mildly},
	{names: "pr", options: options{short: "acdfFJmrtTv0123456789", value: "DhlNowW", glued: "einsS"}, traits: mildly},
	{names: "numfmt", options: options{short: "z", value: "d", long: "debug delimiter= field= format= from= from-unit= grouping header? invalid= padding= round= suffix= to= to-unit= zero-terminated"}, args: argText, traits: stdinToo},
	{names: "iconv", options: options{short: "lcs", value: "ft", long: "from-code= to-code= list silent verbose"}},
	{names: "jq gojq jaq", options: options{short: "nrRjaSCMsce", long: "null-input raw-input raw-output raw-output0 join-output ascii-output sort-keys color-output monochrome-output slurp compact-output exit-status tab indent= stream stream-errors seq unbuffered arg== argjson=="}, args: argFirstText, check: jqCheck},
	{names: "yq", options: options{short: "rCMNejnPyc", value: "opI", long: "raw-output colors no-colors prettyPrint output-format= input-format= null-input exit-status tojson indent= no-doc unwrapScalar?"}, args: argFirstText, check: yqCheck},
	{names: "sed gsed", options: options{short: "nEruz", value: "e", long: "quiet silent regexp-extended expression= null-data unbuffered posix"}, args: argFirstText, unless: "-e --expression", check: sedCheck},
	{names: "awk gawk mawk nawk", options: options{value: "Fv", long: "field-separator= assign="}, args: argFirstText, check: awkCheck},
	{names: "bc", options: options{short: "lqsw", long: "mathlib quiet standard warn"}},

	// Print text or facts about the system.
	{names: "echo", args: argText, traits: anyOption},
	{names: "seq", options: options{short: "w0123456789.", value: "fs", long: "equal-width format= separator="}, args: argText, traits: anyOption},
	{names: "expr", args: argText, traits: anyOption},
	{names: "true false", args: argText, traits: anyOption},
	{names: "pwd", options: options{short: "LP"}, max: none},
	{names: "test [", args: argText, traits: anyOption},
	{names: "printf", args: argText, traits: anyOption},
	{names: "printenv", options: options{short: "0"}, args: argText, traits: anyOption},
	{names: "factor", args: argText, traits: anyOption | stdinToo},
	{names: "cal ncal", options: options{short: "13jmsyhbMNpw", value: "ABCdHn"}, args: argText},
	{names: "date gdate", options: options{short: "uRjn", value: "dr", glued: "I", long: "utc universal date= iso-8601? rfc-3339= rfc-email reference="}, args: argText, paths: "--reference", check: dateCheck},
	{names: "yes", args: argText, traits: anyOption},
	{names: "sleep", args: argText, traits: anyOption},
	{names: "id", options: options{short: "aGgnruZz", long: "group groups name real user context zero"}, args: argText, max: 1},
	{names: "whoami logname groups", args: argText},
	{names: "users", max: none},
	{names: "who w", options: options{short: "abdHlmpqrsTtuwhfi", long: "all boot dead heading count"}, max: none},
	{names: "hostname", options: options{short: "sfiIdAay", long: "short fqdn ip-address all-ip-addresses domain alias long"}, max: none},
	{names: "uname guname", options: options{short: "asnrvmpio", long: "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system"}, max: none},
	{names: "arch", max: none},
	{names: "nproc", options: options{long: "all ignore="}, max: none},
	{names: "uptime", options: options{short: "ps", long: "pretty since"}, max: none},
	{names: "free", options: options{short: "bkmghwtlv", long: "bytes kibi mebi gibi human wide total lohi si"}, max: none},
	{names: "tty", options: options{short: "s", long: "silent quiet"}, max: none},
	{names: "getconf", options: options{short: "a"}, args: argText},
	{names: "locale", options: options{short: "amck"}, args: argText},
	{names: "lsb_release", options: options{short: "aidrcsv"}, max: none},
	{names: "sw_vers", options: options{words: "-productName -productVersion -buildVersion"}, max: none},
	{names: "lscpu", options: options{short: "abcxyBJ", glued: "ep", long: "all online offline bytes json extended? parse? hex physical output-all"}, max: none},
	{names: "lsblk", options: options{short: "abdfilmnpstSzJOPrAD", value: "eIoEx", long: "all bytes nodeps fs inverse json list perms noheadings output= output-all pairs paths raw topology tree? sort="}, args: argText},
	{names: "findmnt", options: options{short: "aAbcDefiJklnPrRuvy", value: "NoOStT", long: "all bytes json list noheadings output= raw real source= target= types="}, args: argText},
	{names: "lsmod lspci lsusb", options: options{short: "vknt"}, max: none},
	{names: "mount", max: none},
	{names: "ps", options: options{short: "AaeflFjHLTmwdNcyM", value: "pPCuUgGotskq", long: "sort= forest headers no-headers pid= ppid= user= format= cols= columns= width="}, args: argText, check: psCheck},
	{names: "pgrep", options: options{short: "afilnovwxc", value: "dgGPstuU", long: "list-name list-full full exact newest oldest count ignore-case parent= group= user= terminal= delimiter="}, args: argText},
	{names: "pstree", options: options{short: "aAchglnpsStTuUZ", value: "H"}, args: argText},
	{names: "ss", options: options{short: "tulnapsmeio460rxwdHOZ", long: "tcp udp listening numeric all processes summary memory extended info options ipv4 ipv6 unix raw no-header oneline"}, max: none},
	{names: "netstat", options: options{short: "tulnapreosvW46i"}, max: none},
	{names: "ifconfig", options: options{short: "as"}, args: argText, max: 1},
	{names: "ip", options: options{short: "46dosjcp", words: "-br -brief -color -json -pretty -details -stats -statistics -4 -6 -o -s -j -d -c"}, args: argText, traits: exact, check: ipCheck},
	{names: "vmstat", options: options{short: "afmnstwdD"}, max: none},
	{names: "getent", args: argText, check: getentCheck},

	// Tool chains, without running what the workspace chooses.
	{names: "go", check: goCheck, args: argText, traits: exact},
	{names: "npm", check: npmCheck, args: argText, traits: exact},
	{names: "tput", args: argText, traits: anyOption},
}

var specTable = sync.OnceValue(func() map[string]*spec {
	table := make(map[string]*spec, 2*len(specs))
	for i := range specs {
		eachName(specs[i].names, func(name string) { table[name] = &specs[i] })
	}
	return table
})

// versionCalls are programs that print their version and end when the flag is
// the only argument. Programs that load code from the workspace before they
// look at it (yarn, mvn, gradle, dotnet, pytest, bundle) are left out.
var versionCalls = []struct{ flags, names string }{
	{"--version", "git node npm npx python python2 python3 pip pip3 ruby gem perl php java javac javap gcc g++ cc c++ clang clang++ make gmake cmake ninja cargo rustc rustup rustfmt docker podman bash zsh sh dash fish curl wget tar gtar bsdtar sed gsed awk gawk grep egrep rg fd fdfind jq yq gojq find gfind sort ls cat head tail diff less vim nvim nano emacs tmux screen ssh openssl sqlite3 psql mysql redis-server ffmpeg convert pandoc tsc deno bun uv swift swiftc kotlinc ghc stack cabal lua luajit elixir julia R Rscript ocaml dart nim zig go gofmt gopls gh hub aws vagrant bat delta eza exa tree file stat du df wc uniq cut tr tac od xxd env timeout xargs rsync zip unzip gzip bzip2 xz zstd ldd ld as objdump nm readelf strace gdb lldb valgrind perf systemctl apt apt-get dpkg rpm dnf yum brew pacman apk snap flatpak parallel shellcheck shfmt pkg-config autoconf automake libtool m4 bison flex protoc black ruff mypy isort"},
	{"-V", "python python2 python3 rustc cargo pip pip3 ssh zip curl"},
	{"-v", "node npm perl php ruby tsc bun gcc clang cc nginx cmake"},
	{"-version", "java javac ffmpeg ffprobe"},
	{"version", "go zig"},
	{"-h", "jq rg fd curl tar"},
	{"--help", "python python3 node npm go cargo rustc rustup gcc clang make cmake docker curl wget tar sed awk grep rg fd jq yq find sort ls cat head tail diff file stat du df wc uniq cut tr xargs rsync zip unzip gzip xz zstd gh pip pip3 ruby perl php java javac deno bun uv shellcheck shfmt gofmt black ruff tree env timeout"},
}

// rustProxies start the tool chain that a rust-toolchain file above the
// current directory names: the rustup book, "Overrides".
const rustProxies = "cargo rustc rustdoc rustfmt rustup"

func (f *frame) isVersionCall(name string, args []word, st *state) bool {
	if len(args) != 1 || !args[0].literal() {
		return false
	}
	if listed(rustProxies, name) && f.j.toolchainFile(st) {
		return false
	}
	for _, v := range versionCalls {
		if v.flags == args[0].text {
			if listed(v.names, name) {
				return true
			}
		}
	}
	return false
}

// toolchainFile reports whether a rust-toolchain file names a folder, which the
// workspace may have filled. Without a Resolver nothing is known.
func (j *judge) toolchainFile(st *state) bool {
	if j.scope.Resolver == nil {
		return false
	}
	if len(st.dirs) == 0 {
		return true
	}
	for d := st.dirs[0]; ; d = path.Dir(d) {
		for _, name := range [...]string{"rust-toolchain", "rust-toolchain.toml"} {
			if text, err := j.scope.Resolver.ReadFile(path.Join(d, name), maxConfig); err == nil && strings.Contains(string(text), "path") {
				return true
			}
		}
		if d == "/" || d == "." {
			return false
		}
	}
}

// readOnly matches a call against the spec of its program.
func (f *frame) readOnly(s *spec, c *command, st *state) (item, output) {
	unproven := func(reason Reason, detail string) (item, output) {
		return item{Target: Target{Reason: reason, Detail: detail}, risk: riskUnproven}, output{}
	}
	call := &f.j.spec
	*call = specCall{f: f, c: c, st: st, opts: call.opts[:0], operands: f.j.newWords(len(c.argv))}
	args := c.args()
	scan := optionScan{options: s.options, argv: args, noCluster: s.traits&exact != 0}
	for {
		switch scan.step() {
		case scanOption:
			call.opts = append(call.opts, scan.buf)
			if scan.buf.has && scan.buf.value.split && scan.buf.value.kind == dynamicWord {
				return unproven(DynamicWord, "the value of an option may become several words")
			}
			continue
		case scanOperand:
			w := args[scan.next-1]
			call.operands = append(call.operands, w)
			continue
		case scanUnknown:
			w := scan.bad
			if s.traits&anyOption != 0 {
				call.operands = append(call.operands, w)
				continue
			}
			if w.kind != literalWord && w.fixed == 0 && s.traits&mildly != 0 && (w.below || w.kind == globWord) {
				call.operands = append(call.operands, w)
				continue
			}
			if s.check != nil && s.traits&exact != 0 {
				call.operands = append(call.operands, w)
				continue
			}
			if !w.flagKnown() {
				return unproven(DynamicWord, "a word that is known only when it runs could be an option")
			}
			return unproven(UnknownOption, "an option that is not on the read-only list: "+w.text)
		}
		break
	}
	if s.need != "" && !call.has(s.need) {
		return unproven(UnknownOption, "only with "+s.need)
	}
	if n := len(call.operands); s.max == none && n > 0 || s.max > 0 && n > s.max {
		return unproven(UnknownOption, "more operands than a read-only call has")
	}
	if s.max > 0 {
		for _, w := range call.operands {
			if w.split {
				return unproven(DynamicWord, "an operand may become several words")
			}
		}
	}
	if s.check != nil {
		if reason, detail := s.check(call); reason != "" {
			return unproven(reason, detail)
		}
	}
	read := func(w word) { // a path that asks is a target of its own
		if w.text == "-" || !w.process && (strings.HasPrefix(w.text, "/dev/") || strings.HasPrefix(w.text, "/proc/")) {
			f.takesScript(c)
		}
		if !w.literal() || w.text != "-" {
			f.readPath(c, w, st, false)
		}
	}
	paths := call.operands
	switch s.args {
	case argText:
		paths = nil
	case argFirstText:
		if s.unless == "" || !call.has(s.unless) {
			paths = paths[min(1, len(paths)):]
		}
	}
	onlyLists := s.args == argPaths && s.traits&cwd != 0
	if len(paths) == 0 && s.args != argText && s.max != none && !onlyLists || s.traits&stdinToo != 0 {
		f.takesScript(c)
	}
	for _, w := range paths {
		read(w)
	}
	if s.paths != "" {
		for _, o := range call.opts {
			if o.has && listed(s.paths, o.name) {
				read(o.value)
			}
		}
	}
	if s.traits&cwd != 0 && len(paths) == 0 || len(paths) == 0 && call.has("-r -R --recursive --dereference-recursive") && s.args == argFirstText {
		if len(st.dirs) == 0 {
			read(word{text: ".", fixed: 1})
		}
		for _, d := range st.dirs[:min(len(st.dirs), max(st.likely, 1))] {
			read(literal(d))
		}
	}
	return item{Target: Target{Reason: ReadOnly}, risk: riskSafe}, s.output(call, c)
}

// output says what the call writes, for the program behind a pipe.
func (s *spec) output(call *specCall, c *command) output {
	switch {
	case s.traits&lists != 0 && !call.has("-l -o -g -n -s -i -Z --long --inode --size --absolute-path -a"):
		for _, w := range call.operands {
			if s.args == argPaths && (w.kind == dynamicWord && !w.below || strings.HasPrefix(w.text, "/") || strings.Contains(w.text, "..")) {
				return output{}
			}
		}
		return output{kind: outNames}
	case call.has("-l -L --files-with-matches --files-without-match --files") && s.args == argFirstText:
		for _, w := range call.operands {
			if strings.HasPrefix(w.text, "/") || strings.Contains(w.text, "..") {
				return output{}
			}
		}
		return output{kind: outNames}
	case c.in.kind == stdinNames && (s.traits&filters != 0 && len(call.operands) == 0 || s.args == argFirstText && len(call.operands) <= 1 && strings.Contains(s.names, "grep") && !call.has("-o --only-matching -c --count -n --line-number -b -A -B -C -H")):
		return output{kind: outNames}
	}
	return output{}
}
