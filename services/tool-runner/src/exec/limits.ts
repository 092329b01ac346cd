// How much of the machine one command may take, and the shell line that sets what a process can limit for itself. Pure.

export interface ExecLimits {
  /** Processes and threads at once. */
  maxProcesses: number;
  /** Memory of the whole command; also the most one process may ask for. */
  maxMemoryBytes: number;
  /** CPU time of one process, all its threads together; left out: no limit but the wall time. */
  maxCpuSeconds?: number;
  /** How many CPUs the whole command may keep busy, 0.5 is half of one; left out: all there are. Only control groups can hold it. */
  maxCpus?: number;
  /** Size of one written file. */
  maxFileBytes: number;
  /** Output after which the command is stopped. */
  maxOutputBytes: number;
  /** Output that is kept in a file when the result shows only its beginning and end. */
  maxSpillBytes: number;
  /** Beginning and end of the output in the result, together. */
  shownBytes: number;
  /** Size of /tmp in the sandbox. */
  maxTemporaryBytes: number;
  /** Between SIGTERM and SIGKILL. */
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
 * Which limit is held by whom, for people. `counted`: the kernel counts the whole command in control groups; `cpus`: it limits its CPU there, too;
 * `walled`: behind bubblewrap.
 */
export function describeLimits(
  limits: ExecLimits,
  { counted, cpus, walled }: { counted: boolean; cpus: boolean; walled: boolean },
): string {
  const looked = "by looking";
  const cpu = [
    ...(limits.maxCpus === undefined ? [] : [cpus ? "cgroup" : "max_cpus is not held here"]),
    ...(limits.maxCpuSeconds === undefined ? [] : ["rlimit a process"]),
  ];
  const held = {
    memory: counted ? "cgroup" : `rlimit a process, ${looked}`,
    processes: counted ? "cgroup" : walled ? `rlimit, ${looked}` : looked,
    cpu: cpu.length === 0 ? "none" : cpu.join(", "),
    "file size": "rlimit a process",
    time: "clock",
  };
  return Object.entries(held)
    .map(([limit, by]) => `${limit}: ${by}`)
    .join("; ");
}

/**
 * A shell script that limits itself and then becomes the shell `$0` with the command `$1`. The data limit counts memory
 * that is really asked for, unlike the address space, of which many runtimes reserve far more than they use.
 * The process limit counts the processes of one user: only in a user namespace are these the command's alone.
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
    // At the first limit a process may still say something; the second one kills it.
    lines.push(`ulimit -S -t ${limits.maxCpuSeconds}; ulimit -H -t ${limits.maxCpuSeconds + 1}`);
  }
  if (ownUserNamespace) {
    lines.push(`ulimit -u ${limits.maxProcesses} 2>/dev/null || ulimit -p ${limits.maxProcesses} 2>/dev/null`);
  }
  lines.push("unset unit", 'exec "$0" -c "$1"');
  return lines.join("\n");
}
