import { afterEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo, terminate, tokenFrom } from '../support/process.ts'

afterEach(endProcesses)

it('a server starts on tables that a newer version has migrated already', async () => {
  const database = await createTestDatabase()
  await query(database.url, `insert into migrations (name, run_on) values ('9999_of_a_newer_version', now())`)
  await query(database.url, 'alter table entities add column of_a_newer_version text')
  const environment = { DATABASE_URL: database.url }
  const kith = launch(environment)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  expect((await send('GET', '/v1/people/ada')).body.data).not.toHaveProperty('of_a_newer_version')
  expect(await terminate(kith)).toBe(0)
  await database.drop()
})
