import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../scripts/source.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = globSync('docs/decisions/0*.md', { cwd: root }).sort()
const numberOf = (file: string) => Number(file.slice('docs/decisions/'.length, 'docs/decisions/0000'.length))
const records = new Map(files.map(file => [numberOf(file), read(file)]))
const rows = [...read('docs/decisions/README.md').matchAll(/^\| \[(\d+)\]\((.+?)\) \| (.+?) \|(.*?) \|$/gm)].map(
  ([, number, file, title, status]) => ({ number: Number(number), file, title, status: status! }),
)
/** The numbers that the index says have no record: of a row, one or a range. */
const unwritten = [
  ...read('docs/decisions/README.md').matchAll(/^\| (\d+)(?: to (\d+))? \| – \| no record \|$/gm),
].flatMap(([, first, last = first]) =>
  Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) => Number(first) + n),
)
/** The numbers of the decisions that a text links to. */
const linked = (text: string) =>
  [...text.matchAll(/\[(?:decision )?(\d+)\]\(\d{4}-/g)].map(([, number]) => Number(number))

describe('the index of decisions', () => {
  it('has each record with its title, in order', () => {
    expect(rows.map(({ number, file, title }) => [`docs/decisions/${file}`, `# ${number}. ${title}`])).toEqual(
      files.map(file => [file, records.get(numberOf(file))!.split('\n')[0]]),
    )
  })

  it('has a row for each number, also for those without a record', () => {
    const all = [...records.keys(), ...unwritten].sort((a, b) => a - b)
    expect(all).toEqual(all.map((_, index) => index + 1))
  })

  it('names what replaces or adds to a record, as the note of the record does', () => {
    for (const { number, status } of rows) {
      const note = records.get(number)!.split('\n## ')[0]!
      const named = [...status.matchAll(/\d+/g)].map(([other]) => Number(other))
      expect([number, linked(note)]).toEqual([number, expect.arrayContaining(named)])
    }
  })

  it('has each decision that a document or a comment names', () => {
    const sources = globSync(['*.md', 'docs/**/*.md', 'src/**/*.ts', 'cli/**/*.ts', 'bench/*.md'], { cwd: root })
    const named = sources.flatMap(path =>
      [...read(path).matchAll(/\b[Dd]ecisions? \[?(\d+)|\[(\d+)\]\(\S*\d{4}-/g)].map(
        ([, plain, link]) => [path, Number(plain ?? link)] as const,
      ),
    )
    expect(named.length).toBeGreaterThan(50)
    expect(named.filter(([, number]) => !records.has(number))).toEqual([])
  })
})
