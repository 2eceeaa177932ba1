import { afterEach, beforeEach, expect, it } from 'vitest'
import { subjects } from '../../src/organizations/logged-changes.ts'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import { retryWaitsMs } from '../../src/webhooks/schedule.ts'
import type { Sender } from '../../src/webhooks/send.ts'
import { useConsole } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'

const { service, open } = useConsole({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let receiver: Receiver
let sender: Sender
let nowMs: number
beforeEach(async () => {
  receiver = await startReceiver()
  nowMs = Date.now()
  sender = createLoopbackSender({ nowMs: () => nowMs })
})
afterEach(async () => {
  await service.sql('delete from followers')
  await sender.close()
  await receiver.close()
})

/** Sends what is due at the time of the test. */
function deliver() {
  nowMs = Math.max(nowMs, Date.now())
  return follow(service.db, [webhookFollower({ sender, nowMs: () => nowMs })], { nowMs: () => nowMs })
}

it('an operator watches changes as they happen, and misses none of a pause', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.people.create({ external_id: 'before', first_name: '<img src=x onerror="document.title=1">' })
  await open(organization, '/changes', async page => {
    await page.getByRole('row', { name: /before/ }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await client.people.create({ external_id: 'live' })
    await page.getByRole('row', { name: /live/ }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('Paused', { exact: true }).waitFor()
    await client.people.create({ external_id: 'during-1' })
    await client.people.create({ external_id: 'during-2' })
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByRole('row', { name: /during-2/ }).waitFor()
    const identifiers = await page.getByRole('row').locator('[role=cell]:nth-child(4)').allTextContents()
    expect(identifiers.filter(text => !/^\d+$/.test(text))).toEqual(['during-2', 'during-1', 'live', 'before'])

    await page.getByLabel('Identifier').fill('before')
    await page.getByRole('row', { name: /live/ }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: /Show change/ }).click()
    await page.getByRole('cell', { name: '<img src=x onerror="document.title=1">' }).waitFor()
    await page.keyboard.press('Escape')
    // The filter is part of the address.
    await page.reload()
    await page.getByRole('row', { name: /before/ }).waitFor()
    expect(await page.getByRole('row', { name: /live/ }).count()).toBe(0)
  })
})

it('an officer reads all changes of one person behind hundreds of others, by the name that she had', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.people.create({ external_id: 'first' })
  await client.people.patch('first', { external_id: 'second' })
  for (let n = 0; n < 6; n += 1)
    await client.people.batch(
      Array.from({ length: 100 }, (_, k) => ({ op: 'create' as const, body: { external_id: `p${n}-${k}` } })),
    )
  await open(organization, '/changes?entity=first', async page => {
    const rows = page.getByRole('row').filter({ has: page.getByRole('button') })
    await expect.poll(() => rows.count()).toBe(2)
    expect(await page.getByRole('button', { name: 'Show older changes' }).count()).toBe(0)
    await client.people.patch('second', { first_name: 'Ada' })
    await expect.poll(() => rows.count()).toBe(3)
    await page.getByRole('button', { name: 'Operation' }).click()
    await page.getByRole('option', { name: 'created' }).click()
    await expect.poll(() => rows.count()).toBe(1)
  })
})

it('an operator finds a change of a filter behind hundreds of others, and reads why nothing is shown', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.people.create({ external_id: 'gone' })
  await client.people.delete('gone')
  for (let n = 0; n < 6; n += 1)
    await client.people.batch(
      Array.from({ length: 100 }, (_, k) => ({ op: 'create' as const, body: { external_id: `p${n}-${k}` } })),
    )
  await open(organization, '/changes?operation=delete', async page => {
    await page.getByRole('row', { name: /gone/ }).waitFor()
  })
  await open(organization, '/changes?operation=merge', async page => {
    await page.getByText('No such change', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Show older changes' }).count()).toBe(0)
  })
})

it('an operator makes a webhook, whose secret is shown once, sees what waits and why, and sends a failed delivery again', async () => {
  const organization = await service.organization()
  const { client } = organization
  receiver.answer = response => response.writeHead(500).end('<b>out of order</b>')
  await open(
    organization,
    '/webhooks',
    async page => {
      await page.getByRole('button', { name: 'New webhook' }).click()
      const boxes = page.getByRole('group', { name: 'Events' }).getByRole('checkbox')
      const events = await boxes.evaluateAll(each => each.map(box => box.closest('label')?.textContent))
      expect(events.toSorted()).toEqual([...subjects, 'consent'].map(subject => `${subject}.*`).toSorted())
      await page.getByRole('checkbox', { name: 'segment.*' }).press('Space')
      await page.getByLabel('URL').fill('https://192.168.0.1/hook')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText('is an address that webhooks may not reach').waitFor()
      expect(await page.getByLabel('URL').inputValue()).toBe('https://192.168.0.1/hook')
      await page.getByLabel('URL').fill(receiver.url)
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText(/^whsec_/).waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      await page.getByText(/whsec_/).waitFor({ state: 'detached' })
      expect((await client.webhooks.list().all())[0]!.events).toEqual(['person.*', 'segment.*'])

      const { external_id } = await client.people.create({ external_id: 'ada' })
      await deliver()
      await client.people.create({ external_id: 'bea' })
      await client.people.patch('ada', { first_name: 'Ada' })
      await deliver()
      await page.reload()
      await page.getByRole('row', { name: /Failing 3\s*the oldest since/ }).waitFor()
      await page.getByRole('link', { name: receiver.url }).click()
      await page.getByText('The receiver does not accept change').waitFor()
      await page.getByText('<b>out of order</b>').waitFor()
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByText('The receiver did not accept the test').waitFor()
      // The delivery that holds up the others comes first, then the newest.
      await page.getByRole('row', { name: /webhook\.test Given up/ }).waitFor()
      const rows = page.getByRole('row').filter({ has: page.getByRole('button') })
      const types = async () => (await rows.locator('td:nth-child(2)').allTextContents()).join(' ')
      expect(await types()).toBe('person.created webhook.test person.updated person.created')
      await rows.first().getByText('Next attempt').waitFor()
      await page.getByRole('button', { name: 'State' }).click()
      await page.getByRole('option', { name: 'Blocked' }).click()
      await expect.poll(types).toBe('person.updated')
      await page.getByRole('button', { name: 'State' }).click()
      await page.getByRole('option', { name: 'Given up' }).click()
      await expect.poll(types).toBe('webhook.test')

      for (const waitMs of [...retryWaitsMs, 0]) {
        nowMs += 1.2 * waitMs
        await deliver()
      }
      // The filter shows what was given up. The last row is the oldest change.
      const oldest = page.getByRole('row', { name: /person.created Given up/ }).last()
      await oldest.getByRole('button', { name: /Details of delivery/ }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('<b>out of order</b>').waitFor()
      await dialog.getByText(`"external_id": "${external_id}"`).waitFor()
      await page.keyboard.press('Escape')

      receiver.answer = response => response.writeHead(204).end()
      const sent = receiver.received.length
      await oldest.getByRole('button', { name: /Send again/ }).click()
      await page.getByText(/is being sent again/).waitFor()
      await deliver()
      await page.getByRole('button', { name: 'State' }).click()
      await page.getByRole('option', { name: 'Delivered' }).click()
      await page.getByRole('row', { name: /person.created Delivered/ }).waitFor()
      const again = receiver.received.slice(sent).map(({ event }) => `${event.type} ${event.data.external_id}`)
      expect(again).toContain('person.created ada')
    },
    { expectedErrors: /Failed to load resource/ },
  )
})
