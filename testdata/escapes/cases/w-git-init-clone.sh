# id: w-git-init-clone
# expect: works
# kind: works
# about: git init and git clone of a local repository inside the workspace
# source: anthropic-experimental/sandbox-runtime issue 98
# check: ok && [ "$(ug -C "$WS/copy" rev-parse HEAD)" = "$(ug -C "$WS" rev-parse HEAD)" ] && [ "$(ug -C "$WS/new" show HEAD:a)" = made ]
git clone -q . copy && git init -q new && cd new && echo made > a && git add a && git -c user.name=x -c user.email=x@x commit -qm 1
