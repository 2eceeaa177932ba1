import type { Database } from '../../db/db.ts'
import { termsOf } from '../../entities/indexes/index-keys.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { type OrganizationFinding, ok, wrong } from './finding.ts'
import { findTableSql, readIndexSampleSql, readMissingTermsSql, readTermSampleSql, readValueSampleSql } from './sql.ts'

type Index = {
  organization_id: number
  organization: string
  index_id: number
  stack_id: number
  key: string
  type: AttributeType
  cardinality: 'one' | 'many'
}
type Stored = { id: string; value: unknown }

/** Compares a sample of the terms of ready indexes with the rows that they are of: what an index says is not checked otherwise. */
export async function checkIndexes(db: Database): Promise<OrganizationFinding[]> {
  const [table] = await db.query<{ present: boolean }>(findTableSql, ['attributes'])
  const indexes = table?.present ? await db.query<Index>(readIndexSampleSql, []) : []
  const findings: OrganizationFinding[] = []
  let compared = 0
  for (const index of indexes) {
    const { organization_id, index_id, stack_id, key } = index
    const stored = await db.query<Stored>(readValueSampleSql, [organization_id, stack_id, key])
    const expected = stored.flatMap(({ id, value }) => [...termsOf(index, value)].map(term => ({ value: term, id })))
    const lacking = await db.query<{ id: string }>(readMissingTermsSql, [
      organization_id,
      index_id,
      JSON.stringify(expected),
    ])
    const terms = await db.query<Stored & { term: string }>(readTermSampleSql, [
      organization_id,
      index_id,
      stack_id,
      key,
    ])
    const stale = terms.filter(({ term, value }) => !termsOf(index, value).has(term))
    compared += expected.length + terms.length
    const named = [...lacking, ...stale].map(({ id }) => id)
    if (named.length > 0)
      findings.push(
        wrong(
          'indexes',
          `the index of the attribute ${index.key} of ${index.organization} differs from the values of ${named.slice(0, 3).join(', ')}: filters are wrong`,
          'PATCH the attribute with {"indexed": false}, and then with {"indexed": true}: that fills its index anew.',
          index.organization,
        ),
      )
  }
  return findings.length > 0
    ? findings
    : [ok('indexes', `${compared} values of ${indexes.length} indexes are those of their rows`)]
}
