import { contextOf } from '../../src/db/context.ts'
import type { Database, Statement } from '../../src/db/db.ts'
import { writeArray } from '../../src/entities/write/request-coalescing.ts'
import { type EntityBody, type Outcome, unkeyed, type Write } from '../../src/entities/write-request.ts'
import type { Organization, Service } from './service.ts'
import { createShop, type Shop } from './shop.ts'

export type { Shop }

/** Creates an organization with relationships of people to a person, to several people, and to a company. */
export const makeShop = (service: Service): Promise<Shop> => createShop(service, 'referrer', 'friends', 'employer')

/** Builds a write of a person, addressed by external identifier. */
export function write(
  operation: Write['operation'],
  external_id: string,
  body: EntityBody = {},
  rest: Partial<Write> = {},
): Write {
  return {
    operation,
    stack_id: 0,
    address: { external_id },
    body: operation === 'create' ? { external_id, ...body } : body,
    boundFrom: 'body',
    if_match: null,
    references: 'create',
    represent: false,
    bytes: 100,
    actor: 'tests',
    request_id: 'sets',
    ...rest,
  }
}

/** Wraps a database so that it records the names of its statements and counts its transactions. */
export function recordStatements(db: Database): { db: Database; statements: string[]; transactions: () => number } {
  const statements: string[] = []
  let transactions = 0
  const record = (statement: Pick<Statement, 'name'>) => statements.push(statement.name)
  return {
    statements,
    transactions: () => transactions,
    db: {
      ...db,
      transaction: (work, options) => {
        transactions += 1
        return db.transaction(
          tx =>
            work({
              ...tx,
              query: (statement, values) => {
                record(statement)
                return tx.query(statement, values)
              },
              append: (into, rows) => {
                record(into)
                return tx.append(into, rows)
              },
            }),
          options,
        )
      },
    },
  }
}

/** Wraps a database so that it runs `act` once, before its first transaction: after the writes were planned, and before they lock the head. */
export function runBeforeTransaction(db: Database, act: () => Promise<unknown>): Database {
  let acting: Promise<unknown> | undefined
  return {
    ...db,
    transaction: async (work, options) => {
      acting ??= act()
      await acting
      return db.transaction(work, options)
    },
  }
}

const limits = { entityKeys: 1_000, entityBytes: 524_288, placeholders: 100, links: 1_000 }

/** Writes to an organization. Returns the outcome of each write. */
export const writeAll = async (
  db: Database,
  organization: Pick<Organization, 'id'>,
  writes: Write[],
): Promise<Outcome[]> => (await writeArray(contextOf(db, organization.id), writes, { limits })).map(unkeyed)

/** The result of a write: the result, the error code of a refusal, `error`, or `missing`. */
export const resultOf = (outcome: Outcome | undefined) => {
  if (!outcome) return 'missing'
  if ('done' in outcome) return outcome.done.result
  return 'refusal' in outcome ? outcome.refusal.code : 'error'
}

/** Returns `count` names: the prefix and an index from 0. */
export const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)
