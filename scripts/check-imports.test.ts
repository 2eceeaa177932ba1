import { describe, expect, it } from 'vitest'
import { checkImports } from './check-imports.ts'

/** The messages for one file with this text. */
const messagesOf = (path: string, text: string) => checkImports([{ path, text }]).map(({ message }) => message)
const importing = (path: string, specifier: string) => messagesOf(path, `import { a } from '${specifier}'`)

describe('an import that the rules allow', () => {
  it.each([
    ['src/people/people.ts', '../entities/sets.ts'],
    ['src/people/people.ts', '../consents/schema.ts'],
    ['src/people/routes.ts', './people.ts'],
    ['src/people/routes.ts', '../route/route.ts'],
    ['src/http/pipeline/pipeline.ts', '../../route/call.ts'],
    ['src/people/people.ts', './sql.ts'],
    ['src/people/sql.ts', '../db/db.ts'],
    ['src/organizations/definitions-sql.ts', '../db/db.ts'],
    ['src/entities/pagination-sql.ts', './sql.ts'],
    ['src/entities/read-sql.ts', '../values/profile-fields.ts'],
    ['src/consents/contactable-sql.ts', '../changes/people-sql.ts'],
    ['src/entities/plan.ts', '../values/errors.ts'],
    ['src/entities/write/load/load.ts', '../past/past-state.ts'],
    ['src/http/pipeline/pipeline.ts', '../../auth/authenticator.ts'],
    ['src/auth/authenticator.ts', '../organizations/organizations.ts'],
    ['src/db/embedded.ts', './embedded/cluster.ts'],
    ['src/process/app.ts', '../people/routes.ts'],
    ['src/main.ts', './process/app.ts'],
    ['cli/main.ts', '../src/process/config.ts'],
    ['examples/people.ts', '@faker-js/faker'],
    ['examples/people.ts', '../client/index.ts'],
    ['test/support/app.ts', '../../src/process/app.ts'],
    ['src/people/people.test.ts', '../records/routes.ts'],
    ['src/organizations/change-organization.ts', './head.ts'],
  ])('is accepted: %s → %s', (path, specifier) => expect(importing(path, specifier)).toEqual([]))
})

describe('an import against the rules', () => {
  it.each([
    ['src/entities/run.ts', '../people/people.ts', 'entities/ does not import people/'],
    ['src/people/people.ts', '../records/records.ts', 'people/ does not import records/'],
    ['src/people/people.ts', '../auth/caller.ts', 'people/ does not import auth/'],
    ['src/changes/sql.ts', '../changes/changes.ts', 'a sql file imports only db/, sql files of its module'],
    [
      'src/organizations/definitions-sql.ts',
      '../values/errors.ts',
      'a sql file imports only db/, sql files of its module',
    ],
    ['src/people/people.ts', './routes.ts', 'only app.ts and main.ts import routes'],
    ['src/people/routes.ts', '../http/pipeline/reply.ts', 'people/ does not import http/'],
    ['src/auth/authenticator.ts', '../http/pipeline/reply.ts', 'auth/ does not import http/'],
    ['src/route/route.ts', '../people/schema.ts', 'route/ does not import people/: it imports db/'],
    ['src/organizations/definitions.ts', '../changes/schema.ts', 'organizations/ does not import changes/'],
    ['src/idempotency/kept-responses.ts', '../changes/schema.ts', 'idempotency/ does not import changes/'],
    [
      'src/http/pipeline/pipeline.ts',
      '../../people/schema.ts',
      'http/ does not import people/: it imports accesses/, auth/, idempotency/, route/, db/',
    ],
    ['src/db/db.ts', '../auth/keys.ts', 'db/ does not import auth/: it imports no module'],
    ['src/values/errors.ts', '../people/schema.ts', 'a file outside the modules'],
    ['src/http/pipeline/pipeline.ts', '../../process/app.ts', 'src/process/app.ts is an entry point'],
    ['src/people/people.ts', './people.test.ts', 'no file imports a test'],
    ['src/people/people.ts', '../../test/support/app.ts', 'src/ does not import test/support/app.ts'],
    ['examples/people.ts', '../src/values/errors.ts', 'examples/ does not import src/values/errors.ts'],
    ['client/src/entities.ts', '../../src/people/schema.ts', 'client/ does not import src/people/schema.ts'],
    ['src/entities/past/as-of.ts', '../write/load/load-sql.ts', 'entities/past/ does not import entities/write/'],
    ['src/webhooks/webhooks.ts', '../organizations/head.ts', 'change an organization by it'],
    ['cli/main.ts', '../test/support/app.ts', 'cli/ does not import test/support/app.ts'],
  ])('is reported: %s → %s', (path, specifier, message) => {
    expect(importing(path, specifier)).toEqual([expect.stringContaining(message)])
  })

  it.each([
    `import type { Row } from '../people/people.ts'`,
    `import '../people/people.ts'`,
    `export * from '../people/people.ts'`,
    `export { row } from '../people/people.ts'`,
    `const people = await import('../people/people.ts')`,
    `type Row = import('../people/people.ts').Row`,
  ])('is reported in every syntax: %s', text => expect(messagesOf('src/changes/changes.ts', text)).toHaveLength(1))

  it('is reported with file, line and reason', () => {
    const text = `import pg from 'pg'\n\n// ünïcode 🐑\nimport { b } from '../people/people.ts'\n`
    expect(checkImports([{ path: 'src/changes/changes.ts', text }])).toEqual([
      {
        path: 'src/changes/changes.ts',
        line: 4,
        message:
          'changes/ does not import people/: it imports organizations/, followers/, idempotency/, consent-links/, route/, db/',
      },
    ])
  })
})

describe('reading process.env', () => {
  it.each([
    'const port = process.env.PORT',
    `const port = process['env'].PORT`,
    'const port = globalThis.process.env.PORT',
    'const { env } = process',
    `import { env } from 'node:process'`,
  ])('is reported in a module: %s', text => expect(messagesOf('src/db/db.ts', text)).toHaveLength(1))

  it.each(['src/process/config.ts', 'src/main.ts', 'cli/main.ts', 'test/support/app.ts', 'src/db/db.test.ts'])(
    'is accepted in %s',
    path => expect(messagesOf(path, 'const port = process.env.PORT')).toEqual([]),
  )

  it('does not include a mention in text, or another field of process', () => {
    expect(messagesOf('src/db/db.ts', `// process.env\nconst a = 'process.env'\nconst { pid } = process`)).toEqual([])
  })
})

it('reports the name of a channel, except in the table of channels and in tests', () => {
  const text = "const channel = 'sms'"
  expect(messagesOf('src/consents/answers.ts', text)).toEqual([expect.stringContaining('derive from its table')])
  for (const path of ['src/values/channels.ts', 'src/consents/answers.test.ts', 'cli/import.ts'])
    expect(messagesOf(path, text)).toEqual([])
})

describe('the names of files and folders', () => {
  it.each(['src/utils.ts', 'src/people/helpers.ts', 'test/common/app.ts', 'cli/lib/run.ts', 'src/types.test.ts'])(
    'are reported if they say nothing: %s',
    path => expect(messagesOf(path, '')).toEqual([expect.stringContaining('says nothing')]),
  )

  it('are reported for barrel files, except that of the client', () => {
    expect(messagesOf('src/people/index.ts', '')).toEqual(['no barrel files: import the file itself'])
    expect(messagesOf('client/index.ts', '')).toEqual([])
  })

  it('are reported for a module that is not listed', () => {
    expect(messagesOf('src/invoices/invoices.ts', '')).toEqual([
      expect.stringContaining('the module invoices/ is not listed'),
    ])
  })
})

it('reports circular imports once and shows the cycle, with type imports', () => {
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
      message: 'circular imports: src/entities/a.ts → src/entities/b.ts → src/entities/c.ts → src/entities/a.ts',
    },
  ])
})
