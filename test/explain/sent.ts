import { type Context, contextOf } from '../../src/db/context.ts'
import type { Database, Statement } from '../../src/db/db.ts'
import { shapePrefix } from '../../src/db/prepared.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'

/** A statement with its values. One that is planned for them has the statements that set its transaction before. */
export type Sent = Pick<Statement, 'text'> & { values: readonly unknown[]; settings?: readonly string[] }

type Change = (rows: object[], sent: readonly Sent[]) => object[]

/**
 * Returns the statements of filters that a read sends: those of shapes, and those that it plans for their values. `change` may replace the rows
 * of a statement of a shape, so that the read goes on as it would among more entities.
 */
export async function statementsOf(
  db: Database,
  organization_id: number,
  read: (context: Context) => Promise<unknown>,
  change: Change = rows => rows,
): Promise<Sent[]> {
  const sent: Sent[] = []
  const query: Database['query'] = async (statement, values, signal) => {
    const rows = await db.query(statement, values, signal)
    if (!statement.name.startsWith(shapePrefix)) return rows as never[]
    sent.push({ text: statement.text, values })
    return change(rows, sent) as never[]
  }
  const transaction: Database['transaction'] = (work, options) => {
    const settings: string[] = []
    return db.transaction(
      tx =>
        work({
          ...tx,
          query: (statement, values) => {
            if (statement.name === '' && values.length === 0) settings.push(statement.text)
            else if (statement.name === '') sent.push({ text: statement.text, values, settings: [...settings] })
            return tx.query(statement, values)
          },
        }),
      options,
    )
  }
  // A read under outdated definitions would send its statements again.
  await reloadDefinitions(contextOf(db, organization_id))
  await read(contextOf({ ...db, root: db, query, transaction }, organization_id))
  return sent
}
