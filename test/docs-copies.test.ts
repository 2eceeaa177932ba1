import { expect, it } from 'vitest'
import { useOwnService } from './support/service.ts'
import { createShop } from './support/shop.ts'

const service = useOwnService()

type Change = {
  id: string
  operation: string
  // biome-ignore lint/suspicious/noExplicitAny: the values of a change are those of any field
  before: any
  // biome-ignore lint/suspicious/noExplicitAny: as above
  after: any
}

it('a copy that follows the table of "Copies with relationships" in docs/changes.md reads as kith does after every change of a target', async () => {
  const { client, send } = await createShop(service, 'friends')

  const names = new Map<string, string | null>()
  const deleted = new Set<string>()
  /** The identifiers of the targets of one source. */
  let targets: string[] = []
  let after = 0
  const rename = (from: string, to: string[]) => {
    targets = [...new Set(targets.flatMap(id => (id === from ? to : [id])))]
  }
  const idOf = (value: string | { id: string }) =>
    typeof value === 'string' ? [...names].find(([, name]) => name === value)![0] : value.id
  const follow = async () => {
    const { items, last } = (await send('GET', `/v1/changes?after=${after}&subject=person`)).body.data
    after = last
    // A change of the source may come before the creation of a placeholder that it names, so names come first.
    for (const change of items as Change[])
      if (change.after && 'external_id' in change.after) names.set(change.id, change.after.external_id)
    for (const change of items as Change[]) {
      const linked = change.after?.attribute_values?.friends
      if (linked !== undefined) targets = (linked ?? []).map(idOf)
      if (change.operation === 'delete') deleted.add(change.id)
      if (change.operation === 'restore') deleted.delete(change.id)
      if (change.operation === 'erase') rename(change.id, [])
      if (change.operation === 'merge') rename(change.id, [change.after.merged_into])
      if (change.operation === 'unmerge') {
        const read = await send('GET', '/v1/people/source')
        targets = read.body.data.attribute_values.friends.map(idOf)
      }
    }
  }
  const expectEqual = async (step: string) => {
    await follow()
    const { attribute_values, version } = (await send('GET', '/v1/people/source')).body.data
    const copy = targets.filter(id => !deleted.has(id)).map(id => names.get(id) ?? { id })
    expect({ step, version, copy }).toEqual({ step, version: 1, copy: attribute_values.friends ?? [] })
  }

  for (const external_id of ['ann', 'bob', 'cid', 'dan', 'eve']) await client.people.create({ external_id })
  const idOfName = async (name: string) => (await client.people.get(name)).id
  const [ann, cid] = [await idOfName('ann'), await idOfName('cid')]
  const friends = ['ann', 'bob', 'cid', 'dan', 'placeholder']
  await client.people.create({ external_id: 'source', attribute_values: { friends } })
  await expectEqual('create')

  const step = async (name: string, method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await send(method, `/v1/people/${path}`, body)
    expect(status, `${name}: ${JSON.stringify(answer)}`).toBeLessThan(300)
    await expectEqual(name)
  }
  await step('rename', 'PATCH', 'ann', { external_id: 'ann-2' })
  await step('clear the name', 'PATCH', 'ann-2', { external_id: null })
  await step('name again', 'PATCH', `internal/${ann}`, { external_id: 'ann-3' })
  await step('delete', 'DELETE', 'cid')
  await step('restore', 'POST', `internal/${cid}/restore`)
  await step('merge into a person who is a target too', 'POST', 'bob/merge', { from: 'ann-3' })
  await step('unmerge', 'POST', 'bob/unmerge', { from_id: ann })
  await step('merge into a person who is no target', 'POST', 'eve/merge', { from: 'dan' })
  await step('rename the survivor', 'PATCH', 'eve', { external_id: 'eve-2' })
  await step('erase', 'POST', 'bob/erase', { reason: 'request' })
  await step('create the placeholder', 'POST', 'upsert', { external_id: 'placeholder', first_name: 'Pia' })
})
