/** Counts passed and failed checks, and prints each with its measurements. */
export type Checks = {
  /** Prints and counts a check: a sentence with its measurements, and whether it passed. */
  check(sentence: string, hasPassed: boolean): void
  print(line: string): void
  /** Prints `N passed, N failed` as a line, and returns the exit code. */
  finish(): number
}

export function createChecks(print: (line: string) => void): Checks {
  const count = { passed: 0, failed: 0 }
  return {
    print,
    check: (sentence, hasPassed) => {
      count[hasPassed ? 'passed' : 'failed'] += 1
      print(`${hasPassed ? 'passed' : 'FAILED'}  ${sentence}`)
    },
    finish: () => {
      print(`${count.passed} passed, ${count.failed} failed`)
      return count.failed === 0 ? 0 : 1
    },
  }
}
