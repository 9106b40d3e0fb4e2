"""Run a program and write what it used to a pipe, as JSON: status, seconds of processor time, peak memory.

What the system tells of a process's memory is at least what the one held from which it came. This one holds
little. On SIGTERM it ends the program, with everything that it has started.

python benchmarks/launch.py PIPE PROGRAM ARGUMENTS...
"""

import json
import os
import signal
import sys

if __name__ == "__main__":
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    program = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, setpgroup=0)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(program, signal.SIGKILL))
    _, status, usage = os.wait4(program, 0)
    told = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss]
    os.write(pipe, json.dumps(told).encode())
