import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/process/config.ts'

const document = readFileSync(new URL('../docs/configuration.md', import.meta.url), 'utf8')
const source = readFileSync(new URL('../src/process/config.ts', import.meta.url), 'utf8')
const tracing = readFileSync(new URL('../docs/tracing.md', import.meta.url), 'utf8')

const settings = [...source.matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name]) => name!)

const limits = [...document.matchAll(/^\| `(KITH_LIMIT_\w+)` \| (\d+)(?: \(.*?\))? \| (\d+) to (\d+) \| /gm)].map(
  ([, name, fallback, minimum, maximum]) => ({
    name: name!,
    fallback: Number(fallback),
    minimum: Number(minimum),
    maximum: Number(maximum),
  }),
)

/** Maps `KITH_LIMIT_BODY_BYTES` and the property `bodyBytes` to the same text. */
const bareName = (name: string) =>
  name
    .replace(/^KITH_LIMIT_/, '')
    .replaceAll('_', '')
    .toLowerCase()

describe('docs/configuration.md', () => {
  it('lists every limit with its default', () => {
    const documented = limits.map(({ name, fallback }) => [bareName(name), fallback])
    const defaults = Object.entries(loadConfig({}).limits).map(([name, value]) => [bareName(name), value])
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(defaults))
  })

  it.each(limits)('gives the range of $name: $minimum to $maximum', ({ name, minimum, maximum }) => {
    const load = (value: number) => loadConfig({ [name]: String(value) })
    for (const value of [minimum, maximum]) expect(() => load(value)).not.toThrow()
    for (const value of [minimum - 1, maximum + 1]) expect(() => load(value)).toThrow(name)
  })

  it('names every setting of src/process/config.ts, with docs/tracing.md for the traces', () => {
    expect(settings.length).toBeGreaterThan(50)
    const missing = settings.filter(name => !`${document}${tracing}`.includes(`\`${name}\``))
    expect(missing).toEqual([])
  })

  it('names no setting that a start refuses as unknown', () => {
    // A code block shows the error for a misspelt setting, so code blocks are left out.
    const names = document.replace(/```[\s\S]*?```/g, '').match(/\b(?:KITH|AUTH)_\w*[A-Z]\b/g)
    for (const name of new Set(names)) expect(() => loadConfig({ [name]: '' })).not.toThrow()
  })
})
