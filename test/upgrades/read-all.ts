import type { Client } from '../../client/index.ts'

/** Everything that an organization can read of itself and that no later version may change: entities, answers, links and history. */
export async function readAll(client: Client) {
  const records: Record<string, unknown[]> = {}
  for (const { key } of await all(client.schema.stacks.list())) records[key] = await all(client.stack(key).export())
  return {
    people: await all(client.people.export()),
    records,
    changes: await all(client.changes.list({ after: 0 })),
    segments: await all(client.segments.list()),
  }
}

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of list) items.push(item)
  return items
}
