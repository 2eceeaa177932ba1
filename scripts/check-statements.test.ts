import { beforeAll, describe, expect, inject, it } from 'vitest'
import type {} from '../test/support/postgres.ts'
import { checkCalls, checkUnknown, withCheckedServer } from './check-statements.ts'
import { findCalls } from './check-statements-calls.ts'
import { certain, nullable } from './check-statements-fixture.ts'
import { withClient, withScratchDatabase } from './schema.ts'
import type { Violation } from './source.ts'

const fixture = 'scripts/check-statements-fixture.ts'
const tables = `
  create table sheep (id integer not null, name text not null, nick text, twin bigint, born timestamptz not null, wool jsonb);
  create table sheds (sheep integer not null, place text not null)`

let unknown: Violation[]
/** The messages of each statement. */
const reported: Record<string, string[]> = {}
let unused: string[]

beforeAll(async () => {
  const found = await findCalls([fixture])
  const exceptions = [['excepted.value'], ['fewer.value']]
  const violations = await withScratchDatabase(inject('postgresAdminUrl'), async url => {
    await withClient(url, client => client.query(tables))
    return withCheckedServer(url, server => checkCalls(server, found.calls, exceptions))
  })
  unknown = found.unknown
  unused = violations.filter(({ path }) => path !== fixture).map(({ message }) => message)
  for (const { message } of violations.filter(({ path }) => path === fixture)) {
    const [, name, text] = /^the statement (\w+) (.*)$/.exec(message)!
    reported[name!] = [...(reported[name!] ?? []), text!]
  }
})

describe('the types of a call', () => {
  it.each([
    ['fewer', ['has 2 parameters, and the call passes 1 values']],
    ['more', ['has 1 parameters, and the call passes at least 2 values']],
    ['parameter', ['has $1 of type int4, and the call passes "a"']],
    ['element', ['has $1 of type _text, and the call passes number[]']],
    ['column', ['returns id as int4, not as string', 'returns born as timestamptz, not as Date']],
    ['array', ['returns ids as _int8, not as number[]']],
    ['missing', ['does not return other']],
    ['unread', ['returns name, which no type of its rows has']],
    ['no_table', ['is refused: relation "goats" does not exist']],
    ['wrapped', ['has $1 of type int4, and the call passes "a"', 'returns value as text, not as number']],
  ])('are reported if they do not fit the statement: %s', (name, messages) => {
    expect(reported[name]).toEqual(messages)
  })

  it.each(['one', 'two', 'also_two', 'all', 'excepted'])('are accepted if they fit the statement: %s', name => {
    expect(reported[name]).toBeUndefined()
  })

  it.each(Object.values(nullable))(
    'are reported if they have no null for a column that may be null: $name',
    ({ name }) => {
      expect(reported[name]).toEqual(['returns value, which may be null, as string'])
    },
  )

  it.each(Object.values(certain))('may have no null for a column that is not known to be null: $name', ({ name }) => {
    expect(reported[name]).toBeUndefined()
  })
})

it('reports an exception that no column needs', () => {
  expect(unused).toEqual(['fewer.value needs no exception any more: remove it'])
})

it('reports calls whose statement it cannot find, except below exempt paths', () => {
  expect(unknown.sort((a, b) => a.line - b.line).map(({ message }) => message)).toEqual([
    expect.stringMatching(/^the statement is `select from .*`, no constant$/),
    'no call of the function around passes a constant statement',
    'the statement is changed, no constant',
    expect.stringMatching(/^the statement is \.\.\..*, no constant$/),
    'the statement has no name',
  ])
  expect(checkUnknown(unknown, [])).toEqual(unknown)
  expect(checkUnknown(unknown, [fixture])).toEqual([])
  expect(checkUnknown([], [fixture])).toMatchObject([
    { path: fixture, message: expect.stringMatching(/exempts no call/) },
  ])
})
