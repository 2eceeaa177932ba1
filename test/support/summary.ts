import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** The result of a run. `failed` includes files, suites and unhandled rejections that failed outside a test. */
export type Counts = { passed: number; failed: number; skipped: number }

/** Formats a run as `N passed, N failed`, followed by `, N skipped` if there are any. */
export function summaryLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Counts the tests of a finished run. A test that did not run counts as skipped. */
export function countTests(modules: readonly TestModule[], strayErrors: number): Counts {
  const states = modules.flatMap(module => [...module.children.allTests()].map(test => test.result().state))
  const containers = modules.flatMap(module => [module, ...module.children.allSuites()])
  const passed = states.filter(state => state === 'passed').length
  const failed = states.filter(state => state === 'failed').length
  const broken = containers.filter(container => container.errors().length > 0).length
  return { passed, failed: failed + broken + strayErrors, skipped: states.length - passed - failed }
}

/** A line for each failure of a run: the name of the test or file, its error and the causes of that, cut to 1,000 characters. */
export function listFailures(modules: readonly TestModule[], strayErrors: readonly unknown[]): string[] {
  const failures = modules.flatMap(module => [
    ...[module, ...module.children.allSuites()].flatMap(container =>
      container.errors().map(error => `${module.relativeModuleId}: ${printError(error)}`),
    ),
    ...[...module.children.allTests('failed')].map(
      test => `${module.relativeModuleId} > ${test.fullName}: ${printError(test.result().errors?.[0])}`,
    ),
  ])
  return [...failures, ...strayErrors.map(error => `outside a test: ${printError(error)}`)]
}

// A property that fails names its seed on the second line, and has the error of the counterexample as its cause.
function printError(error: unknown): string {
  const { message = String(error), cause } = (error ?? {}) as { message?: string; cause?: unknown }
  const text = message.replace(/\s+/g, ' ').trim()
  return (cause === undefined ? text : `${text} <- ${printError(cause)}`).slice(0, 1_000)
}

/** The slowest files of a run, each with its seconds, slowest first. */
export function slowestFiles(modules: readonly TestModule[], max: number): string[] {
  return modules
    .map(module => ({ path: module.relativeModuleId, seconds: module.diagnostic().duration / 1_000 }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, max)
    .map(({ path, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${path}`)
}

/**
 * Writes the summary line and a line per failure to the file that TEST_SUMMARY_FILE names, and prints the ten slowest files.
 * Without the variable it does nothing.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const file = process.env.TEST_SUMMARY_FILE
    if (!file) return
    const lines = [summaryLine(countTests(modules, errors.length)), ...listFailures(modules, errors)]
    writeFileSync(file, `${lines.join('\n')}\n`)
    console.log(['slowest files:', ...slowestFiles(modules, 10)].join('\n'))
  }
}
