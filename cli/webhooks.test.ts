import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { webhookFollower } from '../src/webhooks/deliver.ts'
import type { Sender } from '../src/webhooks/send.ts'
import { runInProcess } from '../test/support/command.ts'
import { follow } from '../test/support/followers.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../test/support/receiver.ts'
import { useOwnService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let receiver: Receiver
let sender: Sender
beforeAll(() => {
  sender = createLoopbackSender()
})
afterAll(() => sender.close())
const organization = useShop(service)
beforeEach(async () => {
  receiver = await startReceiver()
  await organization.client.webhooks.create({ url: receiver.url, events: ['person.*', 'record.created'] })
})
afterEach(async () => {
  await service.sql('delete from followers')
  await receiver.close()
})

const deliver = () => follow(service.db, [webhookFollower({ sender })])
const webhooks = (...args: string[]) =>
  runInProcess(['webhooks', ...args], { KITH_URL: service.address, KITH_TOKEN: organization.token })
const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`

describe('kith webhooks', () => {
  it('list prints a line per webhook, with its state', async () => {
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    await organization.client.webhooks.create({ url: 'https://127.0.0.1:9/x', events: ['stack.*'], active: false })
    const { code, stdout, stderr } = await webhooks('list')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = [
      `1\tactive\t2\t${time}\tperson\\.\\*,record\\.created\t${receiver.url}\t0`,
      `2\tpaused\t3\t\tstack\\.\\*\thttps://127\\.0\\.0\\.1:9/x\t0`,
    ]
    expect(stdout).toMatch(new RegExp(`^${lines.join('\n')}\n$`))
  })

  it('list names a webhook that fails and one that kith has disabled', async () => {
    receiver.answer = response => response.writeHead(500).end()
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    expect((await webhooks('list')).stdout).toMatch(new RegExp(`^1\tfailing since ${time}\t`))
    await service.sql(`update webhooks set disabled_reason = 'gone', disabled_at = now(), active = false`)
    expect((await webhooks('list')).stdout).toMatch(/^1\tdisabled: gone\t/)
  })

  it('deliveries prints a line per delivery, newest first, and tells that there are more', async () => {
    for (const external_id of ['ada', 'bob']) await organization.client.people.create({ external_id })
    await deliver()
    expect(await webhooks('deliveries', '1')).toEqual({
      code: 0,
      stdout: '3\tperson.created\tdelivered\t1\t204\t\n2\tperson.created\tdelivered\t1\t204\t\n',
      stderr: '',
    })
    const first = await webhooks('deliveries', '1', '--limit', '1')
    expect(first).toMatchObject({ stdout: expect.stringMatching(/^3\t/), stderr: 'There are more: --before 3\n' })
    expect((await webhooks('deliveries', '1', '--before', '3')).stdout).toMatch(/^2\t[^\n]*\n$/)
    expect((await webhooks('deliveries', '1', '--status', 'failed')).stdout).toBe('')
  })

  it('deliveries shows the status of the last response, and when the next attempt follows', async () => {
    receiver.answer = response => response.writeHead(503).end()
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    const { stdout } = await webhooks('deliveries', '1', '--status', 'waiting')
    expect(stdout).toMatch(new RegExp(`^2\tperson\\.created\twaiting\t1\t503\t${time}\n$`))
  })

  it('replay sends a range again', async () => {
    for (const external_id of ['ada', 'bob', 'eve']) await organization.client.people.create({ external_id })
    await deliver()
    expect(await webhooks('replay', '1', '--after', '2', '--until', '3')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'kith sends the matching changes after 2 up to 3 again.\n',
    })
    await deliver()
    expect(receiver.received.map(({ sequence }) => sequence).toSorted()).toEqual([2, 3, 3, 4])
  })

  it.each([
    ['a webhook that does not exist', ['deliveries', '9'], 1, /There is no such webhook/],
    ['a range that ends before it begins', ['replay', '1', '--after', '9', '--until', '3'], 1, /until/],
    ['an unknown status', ['deliveries', '1', '--status', 'lost'], 2, /waiting/],
    ['an id that is no number', ['deliveries', 'x'], 2, /whole number/],
  ])('refuses %s', async (_, args, exitCode, pattern) => {
    const { code, stdout, stderr } = await webhooks(...args)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})
