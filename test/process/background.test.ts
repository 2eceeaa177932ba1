import { afterAll, expect, it } from 'vitest'
import { endProcesses, launch, makeDataFolder, senderTo, terminate, tokenFrom } from '../support/process.ts'

afterAll(endProcesses)

it('fills the index of an attribute that is declared over stored values, and filters by it', async () => {
  const environment = { KITH_DATA_DIR: await makeDataFolder(), LOG_LEVEL: 'silent' }
  const kith = launch(environment)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  const operations = Array.from({ length: 300 }, (_, index) => ({
    op: 'create',
    external_id: `p${index}`,
    body: { attribute_values: { size: index } },
  }))
  expect((await send('POST', '/v1/people/batch', { operations })).body.data.failed).toBe(0)
  const filter = { filter: { 'attribute_values.size': { $gte: 297 } }, sort_direction: 'asc' }
  const listExternalIds = async () =>
    (await send('POST', '/v1/people/filter', filter)).body.data.items.map(
      (person: { external_id: string }) => person.external_id,
    )
  const declared = await send('POST', '/v1/schema/attributes', {
    key: 'size',
    owner: 'people',
    type: 'number',
    indexed: true,
  })
  expect([declared.status, declared.body.data.index_state.state]).toEqual([201, 'filling'])
  expect(await listExternalIds()).toEqual(['p297', 'p298', 'p299'])
  const readIndexState = async () => (await send('GET', '/v1/schema/attributes/1')).body.data.index_state
  await expect
    .poll(readIndexState, { timeout: 20_000, interval: 100 })
    .toEqual({ state: 'ready', indexed: 300, total: 300 })
  expect(await listExternalIds()).toEqual(['p297', 'p298', 'p299'])
  expect(await terminate(kith)).toBe(0)
})
