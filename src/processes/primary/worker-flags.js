/** Flags that only the program on the command line needs, with a value that may stand behind `=`. */
const OF_PROGRAM = ['-e', '--eval', '-p', '--print', '-pe', '--input-type']

/**
 * Node.js flags for workers: those of this process without a program given on the command line, which a worker must not
 * run.
 * @param {readonly string[]} flags `process.execArgv`
 * @returns {string[]}
 */
export function workerFlags(flags) {
  const kept = []
  for (let at = 0; at < flags.length; at++) {
    const [name] = flags[at].split('=', 1)
    if (!OF_PROGRAM.includes(name)) kept.push(flags[at])
    // `-p -e CODE`: the first has no value.
    else if (name === flags[at] && !flags[at + 1]?.startsWith('-')) at++
  }
  return kept
}
