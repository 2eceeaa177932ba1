import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type AxeResults = { violations: { id: string; nodes: { html: string }[] }[]; passes: { id: string }[] }

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** The violations that axe-core finds on a page, and how many of its rules the page passes. */
export async function checkAccessibility(page: Page): Promise<{ violations: string[]; passes: number }> {
  // The browser's debugger runs the script, so the policy of the page does not apply to it.
  const results: AxeResults = await page.evaluate(`${axeSource}; axe.run({ runOnly: ${JSON.stringify(rules)} })`)
  const violations = results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
  return { violations, passes: results.passes.length }
}

/** The violations that axe-core finds on a page, as {@link checkAccessibility}. */
export const accessibilityFaults = async (page: Page): Promise<string[]> => (await checkAccessibility(page)).violations
