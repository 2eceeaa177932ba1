import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { exportAll } from '../../test/support/lines.ts'
import { insertPeople } from '../../test/support/many-people.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useOwnService({ KITH_LIMIT_REQUEST_MS: '2000' })
const organization = useShop(service)

const path = '/v1/people/export'
/**
 * Stores people of 5 KB each. An export of 2,000 or more exceeds the buffers of the sockets between service and client.
 */
const storePeople = (count: number) =>
  insertPeople(service.sql, organization.id, count, { attributes: `jsonb_build_object('text', repeat('n', 5000))` })

async function open(): Promise<IncomingMessage> {
  const sent = request(`${service.address}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${organization.token}` },
  })
  sent.end()
  const [response] = await once(sent, 'response')
  return response as IncomingMessage
}

/** The number of database connections with a running export. */
const connections = async () => {
  const rows = await service.sql(
    `select 1 from pg_stat_activity where datname = current_database() and query like 'copy (select%'
       and pid <> pg_backend_pid()`,
  )
  return rows.length
}

describe('an export', () => {
  it('without people is empty', async () => {
    expect(await exportAll(organization, path)).toEqual([])
  })

  it('contains each person as a read returns it, in order of id, with links and consent answers', async () => {
    await organization.send('POST', '/v1/schema/attributes', {
      owner: 'people',
      key: 'friends',
      type: 'person',
      cardinality: 'many',
    })
    await organization.send('POST', '/v1/people', {
      external_id: 'ada',
      email_consent: true,
      attribute_values: { friends: ['bo', 'cy'], note: 'two\nlines \\ "quoted"', nothing: null },
    })
    const all = await exportAll(organization, path)
    expect(all).toHaveLength(3)
    for (const shown of all)
      expect(shown).toEqual((await organization.send('GET', `/v1/people/internal/${shown.id}`)).body.data)
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted())
  })

  it('continues after after_id, which may be an id that does not exist', async () => {
    await storePeople(5)
    const all = await exportAll(organization, path)
    expect(await exportAll(organization, `${path}?after_id=${all[2]!.id}`)).toEqual(all.slice(3))
    expect(await exportAll(organization, `${path}?after_id=00000000-0000-0000-0000-000000000000`)).toEqual(all)
    expect((await organization.send('POST', path, { after_id: all[2]!.id })).body.data).toEqual(all.slice(3))
    expect((await organization.send('POST', `${path}?after_id=nobody`)).status).toBe(400)
  })

  it('of records uses record_ids', async () => {
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    for (const external_id of ['a', 'b']) await organization.send('POST', '/v1/stacks/orders', { external_id })
    const all = await exportAll(organization, '/v1/stacks/orders/export')
    expect(await exportAll(organization, `/v1/stacks/orders/export?after_id=${all[0]!.record_id}`)).toEqual([all[1]])
    expect((await organization.send('POST', '/v1/stacks/nowhere/export')).status).toBe(404)
  })

  it('shows one moment, regardless of concurrent writes', async () => {
    await storePeople(4_000)
    const response = await open()
    await organization.send('PATCH', '/v1/people/p3999', { first_name: 'later' })
    await organization.send('DELETE', '/v1/people/p3998')
    let output = ''
    for await (const chunk of response) output += chunk
    const lines = output.trim().split('\n')
    expect(lines).toHaveLength(4_000)
    expect(output).not.toContain('later')
    await expect.poll(connections).toBe(0)
  }, 30_000)

  it('frees its slot whenever its client disconnects', async () => {
    await storePeople(2_000)
    for (let time = 0; time < 30; time += 1) {
      const response = await open()
      response.on('error', () => {})
      for (let read = 0; read < time % 10; read += 1) await once(response, 'data')
      response.pause()
      if (time % 2) response.socket.resetAndDestroy()
      else response.destroy()
      // The other one of the two slots stays free, so the test can see this one become free.
      await expect.poll(connections, { timeout: 10_000 }).toBe(0)
    }
    expect(await exportAll(organization, path)).toHaveLength(2_000)
    expect(await exportAll(organization, path)).toHaveLength(2_000)
  }, 60_000)

  it('frees its connection if its client disconnects or does not read; a third one of the organization gets 503', async () => {
    await storePeople(4_000)
    const [first, second] = [await open(), await open()]
    const third = await organization.send('POST', path)
    expect({ status: third.status, after: third.headers.get('Retry-After') }).toEqual({ status: 503, after: '10' })
    expect((await (await service.organization()).send('POST', path)).status).toBe(200)
    for (const response of [first, second]) response.on('error', () => {})
    first.destroy()
    // The client does not read the second export, so kith aborts it instead of completing it.
    await expect.poll(connections, { timeout: 10_000 }).toBe(0)
    const closed = new Promise(resolve => second.once('close', resolve))
    second.resume()
    await closed
    expect(second.complete).toBe(false)
    await expect.poll(connections).toBe(0)
    expect(await exportAll(organization, path)).toHaveLength(4_000)
    expect(service.logs.filter(line => line.includes('"fault"'))).toEqual([])
  }, 30_000)
})
