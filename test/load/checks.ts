/** Keeps count of promises kept and broken, and prints each with its figures. */
export type Checks = {
  /** A promise, in a sentence with its figures, and whether it was kept. */
  check(sentence: string, kept: boolean): void
  say(line: string): void
  /** Prints `N passed, N failed` alone on a line, and gives the exit code. */
  finish(): number
}

export function createChecks(print: (line: string) => void): Checks {
  const count = { passed: 0, failed: 0 }
  return {
    say: print,
    check: (sentence, kept) => {
      count[kept ? 'passed' : 'failed'] += 1
      print(`${kept ? 'passed' : 'FAILED'}  ${sentence}`)
    },
    finish: () => {
      print(`${count.passed} passed, ${count.failed} failed`)
      return count.failed === 0 ? 0 : 1
    },
  }
}
