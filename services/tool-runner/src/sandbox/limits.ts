// The resource limits of one command, and the shell script that applies those a process can set for itself. Pure.

export interface ExecLimits {
  /** Concurrent processes and threads. */
  maxProcesses: number;
  /** Memory of the whole command; also the limit for each single process. */
  maxMemoryBytes: number;
  /** CPU time of one process over all its threads; omitted: only the elapsed time limits it. */
  maxCpuSeconds?: number;
  /** CPUs that the whole command may use, 0.5 is half of one; omitted: all. Only control groups can enforce it. */
  maxCpus?: number;
  /** Maximum size of one written file. */
  maxFileBytes: number;
  /** Amount of output at which the command is stopped. */
  maxOutputBytes: number;
  /** Output stored in a file when the result shows only its beginning and end. */
  maxSpillBytes: number;
  /** Bytes of output in the result, beginning and end together. */
  shownBytes: number;
  /** Size of /tmp in the sandbox. */
  maxTemporaryBytes: number;
  /** Delay between SIGTERM and SIGKILL. */
  killAfterMs: number;
}

const mebibyte = 1024 * 1024;

export function defaultExecLimits(machineMemoryBytes: number): ExecLimits {
  return {
    maxProcesses: 512,
    maxMemoryBytes: Math.min(4096 * mebibyte, Math.floor(machineMemoryBytes / 2)),
    maxFileBytes: 1024 * mebibyte,
    maxOutputBytes: 64 * mebibyte,
    maxSpillBytes: 10 * mebibyte,
    shownBytes: 28_000,
    maxTemporaryBytes: Math.min(512 * mebibyte, Math.floor(machineMemoryBytes / 16)),
    killAfterMs: 2_000,
  };
}

/**
 * What enforces each limit, for people. `counted`: control groups count the whole command; `cpus`: they also limit its CPU;
 * `sandboxed`: the command runs in bubblewrap.
 */
export function describeLimits(
  limits: ExecLimits,
  { counted, cpus, sandboxed }: { counted: boolean; cpus: boolean; sandboxed: boolean },
): string {
  const polled = "by polling";
  const cpu = [
    ...(limits.maxCpus === undefined ? [] : [cpus ? "cgroup" : "max_cpus is not enforced here"]),
    ...(limits.maxCpuSeconds === undefined ? [] : ["rlimit per process"]),
  ];
  const held = {
    memory: counted ? "cgroup" : `rlimit per process, ${polled}`,
    processes: counted ? "cgroup" : sandboxed ? `rlimit, ${polled}` : polled,
    cpu: cpu.length === 0 ? "none" : cpu.join(", "),
    "file size": "rlimit per process",
    time: "clock",
  };
  return Object.entries(held)
    .map(([limit, by]) => `${limit}: ${by}`)
    .join("; ");
}

/**
 * A shell script that sets its own limits, then becomes the shell `$0` with the command `$1`. The data limit counts memory that is
 * actually requested; address space would not do, because many runtimes reserve far more than they use. The process limit counts
 * all processes of one user, so it is exact only in a user namespace of the command's own.
 */
export function limitScript(limits: ExecLimits, ownUserNamespace: boolean): string {
  const lines = [
    // dash and ash count file sizes in blocks of 512 bytes, bash in 1,024.
    'if [ -n "$BASH_VERSION" ]; then unit=1024; else unit=512; fi',
    "ulimit -c 0",
    `ulimit -f $((${limits.maxFileBytes} / unit))`,
    `ulimit -d ${Math.floor(limits.maxMemoryBytes / 1024)}`,
  ];
  if (limits.maxCpuSeconds !== undefined) {
    // The soft limit lets the process report; the hard limit kills it.
    lines.push(`ulimit -S -t ${limits.maxCpuSeconds}; ulimit -H -t ${limits.maxCpuSeconds + 1}`);
  }
  if (ownUserNamespace) {
    lines.push(`ulimit -u ${limits.maxProcesses} 2>/dev/null || ulimit -p ${limits.maxProcesses} 2>/dev/null`);
  }
  lines.push("unset unit", 'exec "$0" -c "$1"');
  return lines.join("\n");
}
