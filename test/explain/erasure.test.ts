import { beforeAll, expect, it } from 'vitest'
import { statement } from '../../src/db/db.ts'
import {
  blankFilledSql,
  blankQuotesInSql,
  blankQuotesSql,
  countQuotersChangesSql,
  deleteLinksBetweenSql,
  readQuotersSql,
} from '../../src/entities/erase/erase-sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useService } from '../support/service.ts'

// Ten people link to the one who is erased, in an organization with a long log. The statistics are those of an empty table, or fresh.
const people = 20_000
const changesPerPerson = 4
const maxRows = 100

const sqlId = (n: string) => `('0190000a-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
const erased = '0190000a-0000-7000-8000-000000000001'
const head = people * changesPerPerson

const service = useService()
let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  await service.sql(
    `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor, request_id)
     select ${shop.id}, (i - 1) * ${changesPerPerson} + v, now(), 'entity', 0, ${sqlId('i')},
       case v when 1 then 'create' else 'update' end, v, null, '{"attribute_values": {"friend": "p1"}}', 'a', 'r'
     from generate_series(1, ${people}) i cross join generate_series(1, ${changesPerPerson}) v`,
  )
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select ${shop.id}, ${sqlId('i')}, 1, 0, '${erased}', 0 from generate_series(2, 11) i`,
  )
  await service.sql(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo, unmerged_sequence)
     values (${shop.id}, 1, '${erased}', ${sqlId('12')}, ${sqlId('12')}, 4, now(), '{"into_version": 2, "answers": [], "unmerge_version": 9}', 100)`,
  )
})

it.each([
  ['before the first analyze', false],
  ['after it', true],
])('an erasure reads only the changes that quote the person, %s, also under a generic plan', async (_, isAnalyzed) => {
  if (isAnalyzed) await service.sql('analyze changes, links, past_links, merges')
  const names = '{"0": {"friend": ["p1"]}}'
  const sources = Array.from(
    { length: 10 },
    (_, index) => `0190000a-0000-7000-8000-00000000000${(index + 2).toString(16)}`,
  )
  const ranges = JSON.stringify(sources.map(id => ({ id, after: 0, until: changesPerPerson })))
  const read = await service.db.transaction(async tx => {
    await tx.query(statement('', `set local plan_cache_mode = force_generic_plan`), [])
    return [
      await explain(tx, blankQuotesSql, [shop.id, [erased], names]),
      await explain(tx, blankFilledSql, [shop.id, erased]),
      await explain(tx, countQuotersChangesSql, [shop.id, [erased], 20]),
      await explain(tx, readQuotersSql, [shop.id, [erased], 20, null, 0]),
      await explain(tx, blankQuotesInSql, [shop.id, ranges, names, head]),
      await explain(tx, deleteLinksBetweenSql, [shop.id, [erased], sources]),
    ]
  })
  for (const rows of read) expect(rows).toBeLessThan(maxRows)
})
