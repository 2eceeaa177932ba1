import { isDeepStrictEqual } from 'node:util'
import type { Send } from '../support/service.ts'
import type { Finding } from './replay.ts'
import type { Stored, StoredEntity } from './stored.ts'

type Item = { id?: string; record_id?: string; version: number; attribute_values: Record<string, unknown> }

const pageSize = 500

/** Compares every entity as the service returns it with its stored rows. */
export async function compareWithReads(send: Send, stored: Stored): Promise<Finding[]> {
  const findings: Finding[] = []
  const collections = [
    { stack_id: 0, path: '/v1/people' },
    ...stored.stacks.map(({ id, key }) => ({ stack_id: id, path: `/v1/stacks/${key}` })),
  ]
  const expectedReadOf = createExpectedRead(stored)
  for (const { stack_id, path } of collections) {
    const expected = stored.entities.filter(entity => entity.stack_id === stack_id).map(expectedReadOf)
    const items = (await readAll(send, path)).map(pick)
    const difference = expected.find(expectedItem => !items.some(item => isDeepStrictEqual(item, expectedItem)))
    if (difference || items.length !== expected.length) {
      const text = `${path}: ${items.length} of ${expected.length} ${JSON.stringify(difference)}`
      findings.push({ kind: 'a read differs from the stored entities', text })
    }
  }
  return findings
}

async function readAll(send: Send, path: string): Promise<Item[]> {
  const items: Item[] = []
  for (;;) {
    const last = items.at(-1)
    const after_id = last?.id ?? last?.record_id
    const cursor_configuration = { size: pageSize, ...(after_id && { after_id }) }
    const { status, body } = await send('POST', `${path}/list`, { cursor_configuration })
    if (status !== 200) throw new Error(JSON.stringify(body))
    items.push(...body.data.items)
    if (!body.data.has_more) return items
  }
}

const pick = ({ id, record_id, version, attribute_values }: Item) => ({
  id: id ?? record_id,
  version,
  attribute_values,
})

/** Returns a function that builds the expected read of a stored entity: its plain values, and the current names of its link targets. */
function createExpectedRead({ entities, links, attributes }: Stored) {
  const byId = new Map(entities.map(entity => [entity.id, entity]))
  const bySource = Map.groupBy(links, ({ source_id }) => source_id)
  const declared = new Map(attributes.map(attribute => [attribute.id, attribute]))
  return (entity: StoredEntity) => {
    const attribute_values = { ...entity.attributes }
    for (const { attribute_id, target_id } of bySource.get(entity.id) ?? []) {
      const target = byId.get(target_id)
      if (!target) continue
      const { key, cardinality } = declared.get(attribute_id)!
      if (cardinality === 'one') attribute_values[key] = target.external_id
      else attribute_values[key] = [...((attribute_values[key] as unknown[]) ?? []), target.external_id]
    }
    const id = entity.stack_id === 0 ? entity.id : entity.id.replaceAll('-', '').slice(0, 24)
    return { id, version: entity.version, attribute_values }
  }
}
