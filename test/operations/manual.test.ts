import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { checkout } from '../support/process.ts'
import { anchorsOf, manual } from './manual.ts'

const documents = globSync(['*.md', 'docs/**/*.md', 'client/*.md', 'bench/*.md'], { cwd: checkout }).sort()

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')

/** The links of all documents to files and headings of this repository. */
const links = documents.flatMap(document =>
  [...read(document).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)].map(([, target]) => ({ document, target: target! })),
)

describe('the documents', () => {
  it('link from the README to the operations manual', () => {
    expect(links).toContainEqual({ document: 'README.md', target: 'docs/operations.md' })
  })

  it.each(links)('have no broken link: $document to $target', ({ document, target }) => {
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? document : join(dirname(document), path)
    expect(existsSync(join(checkout, file)), file).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(read(file))).toContain(anchor)
  })
})

it('runs every query of the manual on the tables of the service', async () => {
  const queries = [...manual.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text]) => text!)
  expect(queries.length).toBeGreaterThan(5)
  const database = await createTestDatabase()
  for (const text of queries) await query(database.url, text)
  await database.drop()
})
