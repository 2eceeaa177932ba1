import { describe, expect, it } from 'vitest'
import { checkImports } from './check-imports.ts'

/** What is said of one file with this text. */
const sentencesOf = (path: string, text: string) => checkImports([{ path, text }]).map(({ sentence }) => sentence)
const importing = (path: string, specifier: string) => sentencesOf(path, `import { a } from '${specifier}'`)

describe('an import that follows the arrows is allowed', () => {
  it.each([
    ['src/people/people.ts', '../entities/sets.ts'],
    ['src/people/people.ts', '../consents/schema.ts'],
    ['src/people/routes.ts', './people.ts'],
    ['src/people/routes.ts', '../http/pipeline/route.ts'],
    ['src/people/people.ts', './sql.ts'],
    ['src/people/sql.ts', '../db/db.ts'],
    ['src/organizations/definitions-sql.ts', '../db/db.ts'],
    ['src/entities/pagination-sql.ts', './sql.ts'],
    ['src/entities/plan-write.ts', '../errors.ts'],
    ['src/http/pipeline/pipeline.ts', '../../auth/verify.ts'],
    ['src/auth/verify.ts', '../organizations/organizations.ts'],
    ['src/db/embedded.ts', './embedded/cluster.ts'],
    ['src/app.ts', './people/routes.ts'],
    ['src/main.ts', './app.ts'],
    ['cli/main.ts', '../src/config.ts'],
    ['examples/people.ts', '@faker-js/faker'],
    ['examples/people.ts', '../client/index.ts'],
    ['test/support/app.ts', '../../src/app.ts'],
    ['src/people/people.test.ts', '../records/routes.ts'],
  ])('%s → %s', (path, specifier) => expect(importing(path, specifier)).toEqual([]))
})

describe('an import against the arrows is refused', () => {
  it.each([
    ['src/entities/write-sets.ts', '../people/people.ts', 'entities/ does not import people/'],
    ['src/people/people.ts', '../records/records.ts', 'people/ does not import records/'],
    ['src/people/people.ts', '../auth/caller.ts', 'people/ does not import auth/'],
    ['src/changes/sql.ts', '../changes/changes.ts', 'a sql file imports only db/ and sql files of its room'],
    ['src/organizations/definitions-sql.ts', '../errors.ts', 'a sql file imports only db/ and sql files of its room'],
    ['src/people/people.ts', './routes.ts', 'only app.ts and main.ts import routes'],
    ['src/people/people.ts', '../http/pipeline/route.ts', 'of http/ a room imports only types of route.ts'],
    ['src/people/routes.ts', '../http/pipeline/reply.ts', 'of http/ a room imports only types of route.ts'],
    ['src/auth/verify.ts', '../http/pipeline/route.ts', 'auth/ does not import http/'],
    [
      'src/http/pipeline/pipeline.ts',
      '../../people/schema.ts',
      'http/ does not import people/: it imports auth/, idempotency/, db/',
    ],
    ['src/db/db.ts', '../auth/keys.ts', 'db/ does not import auth/: it imports no room'],
    ['src/errors.ts', './people/schema.ts', 'a file outside the rooms'],
    ['src/http/pipeline/pipeline.ts', '../../app.ts', 'src/app.ts is an entrance'],
    ['src/people/people.ts', './people.test.ts', 'a test is imported by nobody'],
    ['src/people/people.ts', '../../test/support/app.ts', 'src/ does not import test/support/app.ts'],
    ['examples/people.ts', '../src/errors.ts', 'examples/ does not import src/errors.ts'],
    ['client/src/entities.ts', '../../src/people/schema.ts', 'client/ does not import src/people/schema.ts'],
    ['cli/main.ts', '../test/support/app.ts', 'cli/ does not import test/support/app.ts'],
  ])('%s → %s', (path, specifier, sentence) => {
    expect(importing(path, specifier)).toEqual([expect.stringContaining(sentence)])
  })

  it.each([
    `import type { Row } from '../people/people.ts'`,
    `import '../people/people.ts'`,
    `export * from '../people/people.ts'`,
    `export { row } from '../people/people.ts'`,
    `const people = await import('../people/people.ts')`,
    `type Row = import('../people/people.ts').Row`,
  ])('however it is written: %s', text => expect(sentencesOf('src/changes/changes.ts', text)).toHaveLength(1))

  it('but of the route table every room may know the types', () => {
    expect(sentencesOf('src/entities/write-sets.ts', `import type { Call } from '../http/pipeline/route.ts'`)).toEqual(
      [],
    )
    expect(
      sentencesOf('src/entities/write-sets.ts', `import type { Reply } from '../http/pipeline/reply.ts'`),
    ).toHaveLength(1)
  })

  it('and the file, the line and the reason are told', () => {
    const text = `import pg from 'pg'\n\n// ünïcode 🐑\nimport { b } from '../people/people.ts'\n`
    expect(checkImports([{ path: 'src/changes/changes.ts', text }])).toEqual([
      {
        path: 'src/changes/changes.ts',
        line: 4,
        sentence: 'changes/ does not import people/: it imports db/',
      },
    ])
  })
})

describe('process.env is read at the edge of the process alone', () => {
  it.each([
    'const port = process.env.PORT',
    `const port = process['env'].PORT`,
    'const port = globalThis.process.env.PORT',
    'const { env } = process',
    `import { env } from 'node:process'`,
  ])('not in a room: %s', text => expect(sentencesOf('src/db/db.ts', text)).toHaveLength(1))

  it.each(['src/config.ts', 'src/main.ts', 'cli/main.ts', 'test/support/app.ts', 'src/db/db.test.ts'])(
    'but in %s',
    path => expect(sentencesOf(path, 'const port = process.env.PORT')).toEqual([]),
  )

  it('and to mention it, or to read another field of process, is no reading', () => {
    expect(sentencesOf('src/db/db.ts', `// process.env\nconst a = 'process.env'\nconst { pid } = process`)).toEqual([])
  })
})

describe('names say something', () => {
  it.each(['src/utils.ts', 'src/people/helpers.ts', 'test/common/app.ts', 'cli/lib/run.ts', 'src/types.test.ts'])(
    'not %s',
    path => expect(sentencesOf(path, '')).toEqual([expect.stringContaining('says nothing')]),
  )

  it('and there are no barrels but that of the client', () => {
    expect(sentencesOf('src/people/index.ts', '')).toEqual(['no barrels: import the file itself'])
    expect(sentencesOf('client/index.ts', '')).toEqual([])
  })

  it('and a room has a place among the arrows', () => {
    expect(sentencesOf('src/invoices/invoices.ts', '')).toEqual([
      expect.stringContaining('the room invoices/ has no place'),
    ])
  })
})

it('refuses a circle of files once, type imports included, and shows it', () => {
  const found = checkImports([
    { path: 'src/entities/a.ts', text: `import { b } from './b.ts'` },
    { path: 'src/entities/b.ts', text: `import type { C } from './c.ts'\nimport { d } from './d.ts'` },
    { path: 'src/entities/c.ts', text: `\nexport { a } from './a.ts'` },
    { path: 'src/entities/d.ts', text: '' },
  ])
  expect(found).toEqual([
    {
      path: 'src/entities/c.ts',
      line: 2,
      sentence: 'a circle: src/entities/a.ts → src/entities/b.ts → src/entities/c.ts → src/entities/a.ts',
    },
  ])
})
