# id: w-read-home-config
# expect: works
# kind: works
# about: harmless settings in the home can be read
# source: common agent work
# check: ok && grep -q 'Fixture Name' "$LOOT/out" && grep -q 'setting = 42' "$LOOT/out"
cat ~/.gitconfig ~/.config/tool.toml
