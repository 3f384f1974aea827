# id: res-fork-bomb
# expect: blocked
# kind: resource
# os: linux
# watch: yes
# timeout: 15
# about: 1500 processes at the same time
# source: google/nsjail (cgroup pids)
# check: [ "$PROCS" -ge 1400 ]
exec -a "$MARK" "$PY" - <<'E'
import os,time
n=0
try:
    while n<1500:
        if os.fork()==0: time.sleep(3); os._exit(0)
        n+=1
except OSError as e: print(n,e)
time.sleep(1.5)
E
