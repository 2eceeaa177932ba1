import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/**
 * A script for the page, which returns what {@link checkAccessibility} does. axe-core describes every element that passes a rule,
 * unless `resultTypes` leaves them out: a page takes 0.13 s of processor time this way, and 0.4 s with all of them.
 */
const runAxe = `axe.run({ runOnly: ${JSON.stringify(rules)}, resultTypes: ['violations'] }).then(({ violations, passes }) => ({
  violations: violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' | ')),
  passes: passes.length,
}))`

/** The violations that axe-core finds on a page, and how many of its rules the page passes. */
export async function checkAccessibility(page: Page): Promise<{ violations: string[]; passes: number }> {
  // The browser's debugger runs the script, so the policy of the page does not apply to it.
  if (!(await page.evaluate<boolean>('Boolean(window.axe)'))) await page.evaluate(`${axeSource}; undefined`)
  return page.evaluate(runAxe)
}

/** The violations that axe-core finds on a page, as {@link checkAccessibility}. */
export const accessibilityFaults = async (page: Page): Promise<string[]> => (await checkAccessibility(page)).violations
