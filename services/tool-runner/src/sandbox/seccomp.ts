// The seccomp filter for sandboxed commands: closes what namespaces leave open. Pure: it assembles the program (classic BPF,
// seccomp(2)); bubblewrap loads it.
//
// Without the filter, a command can open sockets outside any network namespace (VM sockets reach the host of a virtual machine).
// It can also leave a set-user-ID program in the workspace, owned by this service's user on the host, which may be root.

/** Facts about a processor: AUDIT_ARCH of linux/audit.h, and the system call numbers. */
interface Architecture {
  audit: number;
  /** Calls with this bit belong to another ABI of the same processor (x32). */
  foreignBit: number | undefined;
  socket: number;
  /** [call, argument with the mode] */
  modes: readonly (readonly [call: number, argument: number])[];
  /** [call, argument with the flags]; the mode is the next argument and counts only when a file is created. */
  opens: readonly (readonly [call: number, argument: number])[];
  /** Calls for kernel keyrings, which no namespace of the command covers. */
  keys: readonly number[];
  /** Alternatives to the checked calls whose arguments a filter cannot inspect: io_uring, openat2. Programs work without them. */
  opaque: readonly number[];
}

const opaque = [425, 426, 427, 437];
const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    foreignBit: 0x40000000,
    socket: 41,
    modes: [
      [90, 1], // chmod
      [91, 1], // fchmod
      [268, 2], // fchmodat
      [452, 2], // fchmodat2
      [85, 1], // creat
      [133, 1], // mknod
      [259, 2], // mknodat
    ],
    opens: [
      [2, 1], // open
      [257, 2], // openat
    ],
    keys: [248, 249, 250],
    opaque,
  },
  arm64: {
    audit: 0xc00000b7,
    foreignBit: undefined,
    socket: 198,
    modes: [
      [52, 1], // fchmod
      [53, 2], // fchmodat
      [452, 2], // fchmodat2
      [33, 2], // mknodat
    ],
    opens: [[56, 2]], // openat
    keys: [217, 218, 219],
    opaque,
  },
};

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: these stay in the command's own namespaces. */
const families = [1, 2, 10, 16];
const setIdBits = 0o6000;
/** O_CREAT and the bit that is specific to O_TMPFILE. */
const makesFile = 0o20000100;
const errno = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 };

/** Instructions of linux/bpf_common.h. */
const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const ifEqual = (value: number, then: number, otherwise: number): Instruction => [0x15, then, otherwise, value];
const ifAtLeast = (value: number, then: number, otherwise: number): Instruction => [0x35, then, otherwise, value];
const ifAnyBit = (bits: number, then: number, otherwise: number): Instruction => [0x45, then, otherwise, bits];
const allow: Instruction = [0x06, 0, 0, 0x7fff0000];
const refuse = (code: number): Instruction => [0x06, 0, 0, 0x00050000 | code];

/** Code, jump if true, jump if false (both count the instructions to skip), operand. */
type Instruction = readonly [code: number, then: number, otherwise: number, operand: number];

/** Offsets in struct seccomp_data. The low half of an argument comes first: both processors are little-endian. */
const callNumber = load(0);
const architecture = load(4);
const argument = (index: number) => load(16 + 8 * index);

/** The filter program for a processor; undefined for an unknown one, whose sandbox then runs without a filter. */
export function seccompFilter(processor: NodeJS.Architecture = process.arch): Uint8Array | undefined {
  const known = architectures[processor];
  if (known === undefined) return undefined;
  const noSetId = [ifAnyBit(setIdBits, 0, 1), refuse(errno.EPERM), allow];
  const program = [
    architecture,
    ifEqual(known.audit, 1, 0),
    refuse(errno.EPERM),
    ...(known.foreignBit === undefined ? [] : [callNumber, ifAtLeast(known.foreignBit, 0, 1), refuse(errno.ENOSYS)]),
    ...at(known.socket, [
      argument(0),
      ...families.map((family, index) => ifEqual(family, families.length - index, 0)),
      refuse(errno.EAFNOSUPPORT),
      allow,
    ]),
    ...known.modes.flatMap(([call, mode]) => at(call, [argument(mode), ...noSetId])),
    ...known.opens.flatMap(([call, flags]) =>
      at(call, [argument(flags), ifAnyBit(makesFile, 1, 0), allow, argument(flags + 1), ...noSetId]),
    ),
    ...known.keys.flatMap((call) => at(call, [refuse(errno.EPERM)])),
    ...known.opaque.flatMap((call) => at(call, [refuse(errno.ENOSYS)])),
    allow,
  ];
  return encode(program);
}

/** Runs a block, which must end in a verdict, for one call; other calls skip it. */
function at(call: number, block: readonly Instruction[]): Instruction[] {
  return [callNumber, ifEqual(call, 0, block.length), ...block];
}

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, then, otherwise, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(then, index * 8 + 2);
    bytes.writeUInt8(otherwise, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
}
