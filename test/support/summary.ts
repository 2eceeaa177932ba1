import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** What a run comes to. `failed` also counts files, suites and stray rejections that failed without a test of their own. */
export type Counts = { passed: number; failed: number; skipped: number }

/** The run in one line: `N passed, N failed`, and `, N skipped` where some were. */
export function summaryLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Counts a finished run. What never came to run counts as skipped. */
export function countTests(modules: readonly TestModule[], strayErrors: number): Counts {
  const states = modules.flatMap(module => [...module.children.allTests()].map(test => test.result().state))
  const containers = modules.flatMap(module => [module, ...module.children.allSuites()])
  const passed = states.filter(state => state === 'passed').length
  const failed = states.filter(state => state === 'failed').length
  const broken = containers.filter(container => container.errors().length > 0).length
  return { passed, failed: failed + broken + strayErrors, skipped: states.length - passed - failed }
}

/** Leaves the summary line in the file that TEST_SUMMARY_FILE names; without it, does nothing. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const file = process.env.TEST_SUMMARY_FILE
    if (file) writeFileSync(file, `${summaryLine(countTests(modules, errors.length))}\n`)
  }
}
