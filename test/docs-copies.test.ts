import { expect, it } from 'vitest'
import { useOwnService } from './support/service.ts'
import { createShop, type Shop } from './support/shop.ts'

const service = useOwnService()

type Change = {
  id: string
  operation: string
  after: { external_id?: string | null; merged_into?: string }
  links: Record<string, { before?: string[]; after?: string[] }> | null
}

/** A copy as "Copies with relationships" in docs/changes.md describes it. */
class Copy {
  readonly #names = new Map<string, string | null>()
  readonly #deleted = new Set<string>()
  readonly #erased = new Set<string>()
  readonly #leadsTo = new Map<string, string>()
  readonly #links = new Map<string, string[]>()
  #after = 0

  async follow({ send }: Shop) {
    const { items, last } = (await send('GET', `/v1/changes?after=${this.#after}&subject=person`)).body.data
    this.#after = last
    for (const { id, operation, after, links } of items as Change[]) {
      if (after.external_id !== undefined) this.#names.set(id, after.external_id)
      for (const [key, { after = [] }] of Object.entries(links ?? {})) this.#links.set(`${id} ${key}`, after)
      if (operation === 'delete') this.#deleted.add(id)
      if (operation === 'restore') this.#deleted.delete(id)
      if (operation === 'merge') this.#leadsTo.set(id, after.merged_into!)
      if (operation === 'unmerge') this.#leadsTo.delete(id)
      if (operation === 'erase') this.#erased.add(id)
    }
  }

  read(id: string, key: string): unknown[] {
    const led = (this.#links.get(`${id} ${key}`) ?? []).map(target => this.#lead(target))
    const shown = [...new Set(led)].filter(target => !this.#deleted.has(target) && !this.#erased.has(target))
    return shown.map(target => this.#names.get(target) ?? { id: target })
  }

  #lead(id: string): string {
    const next = this.#leadsTo.get(id)
    return next === undefined ? id : this.#lead(next)
  }
}

it('a copy that follows "Copies with relationships" in docs/changes.md reads as kith does after every change of a target', async () => {
  const shop = await createShop(service, 'referrer', 'friends')
  const { client, send } = shop
  const copy = new Copy()
  for (const external_id of ['ann', 'bob', 'cid', 'dan', 'eve']) await client.people.create({ external_id })
  const idOfName = async (name: string) => (await client.people.get(name)).id
  const [ann, cid] = [await idOfName('ann'), await idOfName('cid')]
  const friends = ['ann', 'bob', 'cid', 'dan', 'placeholder']
  const attribute_values = { friends, referrer: 'cid' }
  const { id } = await client.people.create({ external_id: 'source', attribute_values })

  const expectEqual = async (step: string) => {
    await copy.follow(shop)
    const reply = await send('GET', '/v1/people/source')
    if (reply.status === 404) return
    const { friends = [], referrer } = reply.body.data.attribute_values
    const read = { friends, referrer: referrer === undefined ? [] : [referrer] }
    expect({ step, friends: copy.read(id, 'friends'), referrer: copy.read(id, 'referrer') }).toEqual({ step, ...read })
  }
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
  await step('create the placeholder', 'POST', 'upsert', { external_id: 'placeholder', first_name: 'Pia' })
  await step('delete a target', 'DELETE', 'cid')
  await step('delete the source', 'DELETE', 'source')
  await step('restore the source', 'POST', `internal/${id}/restore`)
  await step('restore the target after its source', 'POST', `internal/${cid}/restore`)
  await step('delete a target again', 'DELETE', 'cid')
  await step('write one of its relationships', 'PATCH', 'source', { attribute_values: { referrer: null } })
  await step('restore it', 'POST', `internal/${cid}/restore`)
  await step('erase', 'POST', 'bob/erase', { reason: 'request' })
  await step('write after all', 'PATCH', 'source', { attribute_values: { friends: ['eve-2', 'ann-3', 'zoe'] } })
})
