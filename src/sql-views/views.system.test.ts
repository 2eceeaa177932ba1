import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, it } from 'vitest'
import { type CheckoutCopy, copyCheckout } from '../../test/support/checkout-copy.ts'
import { runInProcess } from '../../test/support/command.ts'
import { endProcesses, launch } from '../../test/support/process.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { useViews } from '../../test/support/sql-views.ts'

const service = useOwnService()
const { connect, create } = useViews(service)
let copy: CheckoutCopy | undefined

afterEach(async () => {
  copy?.remove()
  await endProcesses()
})

it('a running service closes a field within seconds after the role has closed it, also after a kill', async () => {
  const environment = { DATABASE_URL: service.databaseUrl }
  const shop = await createShop(service, 'city')
  await shop.ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  const fields = { people: { read: ['first_name', 'attribute_values.city'] } }
  await shop.ok('POST', '/v1/roles', { key: 'desk', scopes: ['people:read'], fields })
  const { role, password } = await create(shop, '--fields-of', 'desk')
  const reader = await connect(role, password)
  expect(await reader.rows('select first_name, city from people')).toEqual([{ first_name: 'Ada', city: 'Rome' }])
  const codeOf = (text: string) =>
    reader.rows(text).then(
      () => '',
      ({ code }) => code,
    )
  const first = launch(environment)
  await first.ready
  await shop.ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['first_name'] } } })
  await expect.poll(() => codeOf('select city from people'), { timeout: 10_000 }).toBe('42703')
  first.child.kill('SIGKILL')
  await first.ended
  await shop.ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['language'] } } })
  await launch(environment).ready
  await expect.poll(() => codeOf('select first_name from people'), { timeout: 10_000 }).toBe('42703')
}, 60_000)

it('kith migrate changes a column that the views read, waits for no view of an idle reader, and makes the views anew', async () => {
  copy = copyCheckout()
  copy.write('migrations/9001_longer.sql', 'alter table entities alter column language type varchar(200);\n')
  copy.write('migrations/9002_renamed.sql', 'alter table consent_types alter column key type varchar(100);\n')
  const shop = await createShop(service, 'city')
  await shop.ok('POST', '/v1/people', { external_id: 'ada', language: 'en', attribute_values: { city: 'Rome' } })
  const { role, password } = await create(shop)
  const reader = await connect(role, password)
  const env = { ...process.env, DATABASE_URL: service.databaseUrl }
  const migrate = () =>
    promisify(execFile)(process.execPath, [join(copy!.path, 'cli/main.ts'), 'migrate', '--json'], { env })
  const { stdout } = await migrate()
  expect(JSON.parse(stdout)).toEqual({ ran: ['9001_longer', '9002_renamed'] })
  expect(await reader.rows('select language, city from people')).toEqual([{ language: 'en', city: 'Rome' }])
  expect(await reader.rows('select distinct consent_type from consents')).toEqual([{ consent_type: 'marketing' }])
  // A migration that fails leaves the views as they are.
  copy.write(
    'migrations/9003_wrong.sql',
    'alter table entities alter column language type integer using language::integer;\n',
  )
  await expect(migrate()).rejects.toThrow()
  expect(await reader.rows('select language, city from people')).toEqual([{ language: 'en', city: 'Rome' }])
  await service.sql(`delete from migrations where name like '900%'`)
  await service.sql(`drop schema "${role}" cascade`)
  await service.sql('alter table entities alter column language type text')
  await service.sql('alter table consent_types alter column key type text collate "C"')
  expect(
    (await runInProcess(['views', 'renew', '--org', shop.key], { DATABASE_URL: service.databaseUrl })).stderr,
  ).toContain(`Renewed ${role}.`)
}, 60_000)
