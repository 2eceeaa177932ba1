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
  it('list prints a row for each webhook, with its state', async () => {
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    await organization.client.webhooks.create({ url: 'https://127.0.0.1:9/x', events: ['stack.*'], active: false })
    const { code, stdout, stderr } = await webhooks('list', '--format', 'csv')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = [
      'id,state,position,last_success_at,events,url,waiting,headers',
      `1,active,2,${time},"person\\.\\*,record\\.created",${receiver.url},0,`,
      `2,paused,3,,stack\\.\\*,https://127\\.0\\.0\\.1:9/x,0,`,
    ]
    expect(stdout).toMatch(new RegExp(`^${lines.join('\n')}\n$`))
  })

  it('headers sets a header to the text on stdin, shows names alone, and removes it', async () => {
    const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
    const words = ['webhooks', 'headers', '1', '--set', 'Authorization']
    const set = await runInProcess(words, environment, process.cwd(), 'Bearer s3cret\n')
    expect(set).toEqual({ code: 0, stdout: '', stderr: 'The webhook has the headers authorization.\n' })
    expect((await webhooks('list', '--format', 'csv')).stdout).toMatch(/,authorization$/m)
    await organization.client.webhooks.test(1)
    expect(receiver.received[0]!.headers.authorization).toBe('Bearer s3cret')
    const removed = await webhooks('headers', '1', '--remove', 'authorization', '--json')
    expect(JSON.parse(removed.stdout)).toEqual({ headers: [] })
    expect((await webhooks('headers', '1')).code).toBe(2)
  })

  it('links lets the events of a webhook carry links, and ends that', async () => {
    expect(await webhooks('links', '1', 'on')).toMatchObject({ code: 0 })
    expect((await organization.client.webhooks.get(1)).links).toBe(true)
    expect(JSON.parse((await webhooks('links', '1', 'off', '--json')).stdout)).toEqual({ links: false })
    expect((await webhooks('links', '1', 'maybe')).code).toBe(2)
  })

  it('list names a webhook that fails and one that kith has disabled', async () => {
    receiver.answer = response => response.writeHead(500).end()
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    expect((await webhooks('list', '--format', 'csv')).stdout).toMatch(new RegExp(`^1,failing since ${time},`, 'm'))
    await service.sql(`update webhooks set disabled_reason = 'gone', disabled_at = now(), active = false`)
    expect((await webhooks('list', '--format', 'csv')).stdout).toMatch(/^1,disabled: gone,/m)
  })

  it('deliveries prints a row for each delivery, newest first, and tells that there are more', async () => {
    for (const external_id of ['ada', 'bob']) await organization.client.people.create({ external_id })
    await deliver()
    expect(await webhooks('deliveries', '1', '--format', 'csv')).toEqual({
      code: 0,
      stdout:
        'sequence,type,status,attempts,response,next_attempt_at\n' +
        '3,person.created,delivered,1,204,\n2,person.created,delivered,1,204,\n',
      stderr: '',
    })
    const first = await webhooks('deliveries', '1', '--limit', '1')
    expect(first).toMatchObject({
      stdout: expect.stringMatching(/^\{"sequence":3,[^\n]*\n$/),
      stderr: 'There are more: --before 3\n',
    })
    expect((await webhooks('deliveries', '1', '--before', '3')).stdout).toMatch(/^\{"sequence":2,[^\n]*\n$/)
    expect((await webhooks('deliveries', '1', '--status', 'failed')).stdout).toBe('')
  })

  it('deliveries shows the status of the last response, and when the next attempt follows', async () => {
    receiver.answer = response => response.writeHead(503).end()
    await organization.client.people.create({ external_id: 'ada' })
    await deliver()
    const { stdout } = await webhooks('deliveries', '1', '--status', 'waiting', '--format', 'csv')
    expect(stdout).toMatch(new RegExp(`^2,person\\.created,waiting,1,503,${time}$`, 'm'))
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
