# id: w-go-build
# expect: works
# kind: works
# needs: command -v go
# fixture: go
# timeout: 45
# env: GOPROXY=off
# env: GOTOOLCHAIN=local
# about: go build with a dependency from the module cache in the home
# source: common agent work
# check: ok && [ "$("$WS/app" 2>&1)" = "dep 42" ]
go build -o app .
