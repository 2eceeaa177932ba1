import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { jobsFollower } from '../../src/jobs/run-jobs.ts'
import { defaultLimits } from '../../src/process/config.ts'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import { accessibilityFaults } from './accessibility.ts'
import { button, dialog, useConsole } from './console.ts'
import { choose, history, section } from './console-person.ts'
import { overflowOf } from './console-records.ts'
import { follow } from './followers.ts'
import { createLoopbackSender, startReceiver } from './receiver.ts'
import { followSegments } from './segments.ts'
import type { Organization, Service } from './service.ts'
import { createShop } from './shop.ts'

/** A page of the console, and the states in which it is checked. Each state begins where the one before it ended. */
type Place = {
  path: string
  states: Record<string, (page: Page) => Promise<unknown>>
  isNewOrganization?: boolean
  expectedErrors?: RegExp
}

const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })
const tab = async (page: Page, name: string) => {
  await page.getByRole('tab', { name }).click()
  await page.getByRole('tabpanel', { name }).waitFor()
}

async function closeDialog(page: Page) {
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

async function openDialog(page: Page, name: string | RegExp) {
  await button(page, name).click()
  await page.getByRole('dialog').waitFor()
}

const columns = encodeURIComponent('email,email_consent,attribute_values.loyalty')

/** A filter that shows each kind of control. */
const linksFilter = encodeURIComponent(
  JSON.stringify({
    'incoming.orders.buyer': {
      $none: {},
      $count: { $gte: 2 },
      $max: { created_at: { $gte: '2026-01-01T00:00:00Z' } },
      $where: { 'attribute_values.total': { $gt: 5 }, state: 'active' },
    },
    'attribute_values.referrer': { $some: { $or: [{ email_consent: true }, { language: { $in: ['en', 'de'] } }] } },
    date_of_birth: { $exists: true },
    deliverability: { $some: { channel: 'email', state: 'suppressed' } },
  }),
)

const places: Place[] = [
  { path: '/sign-in', states: { form: page => button(page, 'Sign in').waitFor() } },
  {
    path: '/people',
    isNewOrganization: true,
    states: { 'no people': page => page.getByText('No people yet: import a file').waitFor() },
  },
  {
    path: `/people?columns=${columns}`,
    states: {
      list: page => link(page, 'Rosa Luxemburg').waitFor(),
      filter: async page => {
        await button(page, 'Filter').click()
        await page.getByRole('combobox', { name: 'Field' }).fill('consent')
        await page.getByRole('option', { name: 'Consent', exact: true }).click()
        await page.getByText('This filter matches').waitFor()
      },
      columns: page => openDialog(page, 'Columns'),
      export: async page => {
        await closeDialog(page)
        await openDialog(page, 'Export as CSV')
      },
      'new person': async page => {
        await closeDialog(page)
        await openDialog(page, 'New person')
      },
    },
  },
  {
    path: `/people?filter=${linksFilter}`,
    states: {
      'filter on links': async page => {
        await page.getByText('0 people').first().waitFor()
        await button(page, /^Filter/).click()
        await page.getByRole('group', { name: 'Only Orders where' }).first().waitFor()
      },
    },
  },
  {
    path: '/people?filter=%7Bbad',
    states: {
      'unreadable filter': page =>
        page.getByRole('heading', { name: 'The filter of this address cannot be read' }).waitFor(),
    },
    // React reports what a page in place of another one shows.
    expectedErrors: /The filter of the address cannot be read/,
  },
  {
    path: '/people/ada',
    states: {
      person: async page => {
        await section(page, 'Linked people and records').getByRole('link').first().waitFor()
        await history(page).first().waitFor()
      },
      forms: async page => {
        await button(page, 'Edit: Profile').click()
        await button(page, 'Edit: Attributes').click()
      },
      answers: async page => {
        await button(page, 'Cancel').first().click()
        await button(page, 'Cancel').first().click()
        await button(page, /^Marketing, Email/).click()
        await button(page, 'Record an answer').click()
      },
      merge: async page => {
        await closeDialog(page)
        await choose(page, /Merge/)
        await dialog(page)
          .getByLabel(/Search by name/)
          .fill('grace')
        await dialog(page).getByRole('button', { name: /grace/ }).click()
        await dialog(page).getByRole('row').first().waitFor()
      },
      erase: async page => {
        await closeDialog(page)
        await choose(page, /Erase/)
        await page.getByRole('textbox', { name: 'Reason' }).fill('Request')
        await page.getByText('Erase although the person is under a legal hold').click()
        await button(page, 'Show what goes').click()
        await page.getByLabel(/to confirm/).waitFor()
      },
    },
  },
  {
    path: '/people/grace',
    states: { 'suppressed address': page => button(page, 'Lift…: grace@example.org').waitFor() },
  },
  {
    path: '/people/ada?version=1',
    states: { 'past person': page => page.getByText(/You see this person as of/).waitFor() },
  },
  {
    path: '/records',
    states: {
      stacks: page => link(page, 'Orders').waitFor(),
      records: async page => {
        await link(page, 'Orders').click()
        await link(page, 'o-1').waitFor()
      },
      'new record': async page => {
        await page.keyboard.press('n')
        await page.getByRole('dialog').waitFor()
      },
      record: async page => {
        await closeDialog(page)
        await link(page, 'o-1').click()
        await link(page, 'v-1').waitFor()
      },
      editor: page => button(page, 'Edit: Values').click(),
    },
  },
  {
    path: '/reports?owner=orders&group=attribute_values.buyer.gone',
    states: {
      'refused report': page => page.locator('[aria-invalid=true]').first().waitFor(),
    },
    expectedErrors: /400/,
  },
  {
    path: '/reports?owner=orders&group=attribute_values.buyer&measure=sum&of=attribute_values.total',
    states: {
      report: page => page.getByRole('img', { name: /^Sum: Total by Buyer/ }).waitFor(),
      'filter of a report': async page => {
        await button(page, 'Filter').click()
        await page.getByText('This filter matches').waitFor()
      },
    },
  },
  {
    path: '/reports?group=created_at&by=day&group2=state',
    states: { 'report over time': page => page.getByRole('row', { name: /active/ }).waitFor() },
  },
  {
    path: '/schema?owner=orders',
    states: {
      attributes: page => link(page, 'Total').waitFor(),
      picture: async page => {
        await tab(page, 'Picture')
        await page.getByRole('region', { name: 'The links as a list' }).getByText('Buyer links to People').waitFor()
      },
      'observed keys': async page => {
        await tab(page, 'Observed keys')
        await button(page, 'Declare colour').waitFor()
      },
      settings: async page => {
        await tab(page, 'Settings')
        await page.getByLabel('Accent colour').waitFor()
      },
      'consent types': async page => {
        await tab(page, 'Consent types')
        await link(page, 'Marketing').waitFor()
      },
      'consent type': async page => {
        await link(page, 'Marketing').click()
        await page.getByText('Send me news.').waitFor()
      },
      'new consent type': async page => {
        await page.goBack()
        await link(page, 'New consent type').click()
        await page.getByLabel('Key').waitFor()
      },
    },
  },
  {
    path: '/schema',
    states: {
      'new attribute': async page => {
        await link(page, 'New attribute').click()
        await page.getByLabel('Key').waitFor()
      },
      attribute: async page => {
        await page.goBack()
        await link(page, 'loyalty').click()
        await button(page, 'Edit attribute').click()
        await page.getByLabel('Minimum').waitFor()
      },
    },
  },
  {
    path: '/import',
    states: {
      file: page => page.getByLabel(/Drop a CSV file/).waitFor(),
      columns: page => chooseSmallFile(page),
      'refused line': async page => {
        // A test of the columns may have changed what they become.
        await page.reload()
        await chooseSmallFile(page)
        await page.getByRole('button', { name: 'Import', exact: true }).click()
        await page.getByText('Imported: people.csv').waitFor()
      },
      'mended line': async page => {
        await button(page, 'Mend line 3').click()
        await page.getByLabel('email').fill('b@example.org')
        await button(page, 'Keep the change').click()
        await page.getByText('Mended').waitFor()
      },
    },
  },
  {
    path: '/export',
    states: {
      choice: page => page.getByRole('button', { name: 'Export', exact: true }).waitFor(),
      exported: async page => {
        await page.getByRole('button', { name: 'Export', exact: true }).click()
        await page.getByText(/exported\.$/).waitFor()
      },
    },
  },
  {
    path: '/consents?interval=week',
    states: {
      consents: async page => {
        await page.getByRole('row', { name: /^Marketing Email/ }).waitFor()
        await page.getByRole('img', { name: /Marketing, Email: answers in force/ }).waitFor()
      },
    },
  },
  {
    path: '/duplicates',
    states: { duplicates: page => page.getByRole('heading', { name: 'Set aside as not the same' }).waitFor() },
  },
  { path: '/ledger', states: { ledger: page => page.getByRole('row', { name: /signs/ }).waitFor() } },
  {
    path: '/deliverability',
    states: {
      suppressions: page => page.getByRole('row', { name: /grace@example\.org/ }).waitFor(),
      lift: async page => {
        await button(page, 'Lift…: grace@example.org').click()
        await page.getByRole('alertdialog').waitFor()
      },
      sources: async page => {
        await button(page, 'Cancel').click()
        await tab(page, 'Sources')
        await page.getByText('news · Amazon SES').waitFor()
      },
      'new source': page => openDialog(page, 'New source'),
    },
  },
  {
    path: '/changes',
    states: {
      changes: page => page.getByText('Live', { exact: true }).waitFor(),
      change: async page => {
        await page
          .getByRole('button', { name: /Show change/ })
          .first()
          .click()
        await page.getByRole('dialog').waitFor()
      },
    },
  },
  {
    path: '/lifetimes',
    states: {
      lifetimes: page => page.getByRole('link', { name: 'gone' }).waitFor(),
      'people out of use': async page => {
        await openDialog(page, 'People out of use…')
        await page.getByRole('checkbox', { name: 'gone' }).press('Space')
        await page.getByText(/in none of them now/).waitFor()
      },
      'new rule': async page => {
        await closeDialog(page)
        await openDialog(page, 'New rule')
      },
      rule: async page => {
        await closeDialog(page)
        await page.getByRole('link', { name: 'gone' }).click()
        await page.getByText('The rule has done nothing yet.').waitFor()
      },
    },
  },
  {
    path: '/jobs',
    states: {
      'changes of many': page => page.getByRole('row', { name: /Fields or consents/ }).waitFor(),
      'one change': page => openDialog(page, /^Open the change of/),
    },
  },
  {
    path: '/erasures',
    states: {
      erasures: page => page.getByRole('row', { name: /Request of 12 May/ }).waitFor(),
      'what was erased': page => openDialog(page, /Details of erasure/),
    },
  },
  {
    path: '/webhooks',
    states: {
      webhooks: page => page.getByRole('row', { name: /Failing/ }).waitFor(),
      'new webhook': page => openDialog(page, 'New webhook'),
      webhook: async page => {
        await closeDialog(page)
        await page.getByRole('link', { name: '/hook' }).click()
        await page.getByText('The receiver does not accept change').waitFor()
      },
      delivery: async page => {
        await page
          .getByRole('button', { name: /Details of delivery/ })
          .first()
          .click()
        await page.getByRole('dialog').waitFor()
      },
    },
  },
  {
    path: '/operations',
    states: {
      operations: async page => {
        await page.getByText(/^Checked /).waitFor()
        await page.getByRole('img', { name: /Requests per second/ }).waitFor()
        await page.getByRole('img', { name: /Memory, MB/ }).waitFor()
      },
    },
  },
  {
    path: '/access',
    states: {
      accounts: page => page.getByText('No accounts yet').waitFor(),
      clients: async page => {
        await tab(page, 'Clients')
        await page.getByRole('row', { name: /Website/ }).waitFor()
      },
      sessions: async page => {
        await tab(page, 'Sessions')
        await page.getByRole('row', { name: /Ada/ }).first().waitFor()
      },
      keys: async page => {
        await tab(page, 'Keys')
        await page.getByText('Signs new tokens').waitFor()
      },
      tokens: async page => {
        await tab(page, 'Tokens')
        await page.getByRole('checkbox', { name: /Read people/ }).press('Space')
      },
      'new client': async page => {
        await tab(page, 'Clients')
        await openDialog(page, 'New client')
        await page.getByRole('checkbox', { name: /Read people/ }).press('Space')
      },
    },
  },
]

/** An organization that has something to show on every page. */
async function createSample(service: Service): Promise<Organization> {
  const organization = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    'visits',
    { owner: 'orders', key: 'total', type: 'number', name: 'Total' },
    { owner: 'orders', key: 'buyer', type: 'person', name: 'Buyer' },
    { owner: 'visits', key: 'order', type: 'stack', target_stack: 'orders' },
    { owner: 'people', key: 'loyalty', type: 'number' },
    { owner: 'people', key: 'tags', type: 'text', cardinality: 'many' },
    'referrer',
  )
  const { client } = organization
  const { schema, people, access } = client
  await schema.consentTypes.addText(1, { language: 'en', text: 'Send me news.' })
  const consents = [{ consent_type_id: 1, channel: 'email' as const, state: false, method: 'phone' as const }]
  const attribute_values = { tags: ['a'], nick: 'x', referrer: 'grace', loyalty: 3 }
  await people.create({ external_id: 'ada', first_name: 'Ada', consents, attribute_values })
  await people.batch([
    { op: 'create', body: { external_id: 'alan', first_name: 'Alan', email: 'alan@example.org' } },
    { op: 'create', body: { external_id: 'rosa', first_name: 'Rosa', last_name: 'Luxemburg', email_consent: true } },
  ])
  await people.patch('ada', { last_name: 'Lovelace' })
  await people.patch('grace', { email: 'grace@example.org' })
  await client
    .stack('orders')
    .create({ external_id: 'o-1', attribute_values: { total: 10, buyer: 'ada', colour: 'red' } })
  await client.stack('visits').create({ external_id: 'v-1', attribute_values: { order: 'o-1' } })
  await access.clients.create({ name: 'Website', scopes: ['people:read'] })
  await client.segments.create({ key: 'gone', filter: { first_name: 'Ada' } })
  await client.retentionRules.create({ segment: 'gone', after_days: 1_095, action: 'erase' })
  const complaint = { channel: 'email', address: 'grace@example.org', type: 'complaint', provider: 'ses' } as const
  await client.deliverability.record([complaint])
  const topic_arn = 'arn:aws:sns:eu-central-1:123456789012:mail'
  await client.deliverability.addSource({ key: 'news', provider: 'ses', topic_arn })
  await client.holds.set('ada', { reason: 'Case 2026-17' })
  await people.create({ external_id: 'gone', first_name: 'Gone' })
  await people.erase('gone', { reason: 'Request of 12 May' })
  await people.bulk({ filter: { external_id: 'rosa' }, change: { op: 'patch', body: { email: 'alan@example.org' } } })
  const job = { originName: 'kith.test', limits: defaultLimits, pausePerWork: 0 }
  await follow(service.db, [jobsFollower(job)])
  await followSegments(service)
  return organization
}

/** Makes a webhook of the organization fail: its receiver answers 500. Returns the function that ends the receiver. */
async function failWebhook(service: Service, { client }: Organization): Promise<() => Promise<void>> {
  const receiver = await startReceiver()
  receiver.answer = response => response.writeHead(500).end('out of order')
  const sender = createLoopbackSender()
  await client.webhooks.create({ url: receiver.url, events: ['person.*'] })
  await client.people.patch('alan', { last_name: 'Turing' })
  await follow(service.db, [searchFollower(), webhookFollower({ sender })])
  return async () => {
    await sender.close()
    await receiver.close()
  }
}

type View = { width: number; colorScheme: 'light' | 'dark' }

/** Declares a test for each page of the console, which calls `check` in each of its states. */
export function testPages({ width, colorScheme }: View, check: (page: Page, state: string) => Promise<void>): void {
  const { service, open } = useConsole({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
  let sample: Organization
  let stopReceiver: () => Promise<void>
  beforeAll(async () => {
    sample = await createSample(service)
    stopReceiver = await failWebhook(service, sample)
  })
  afterAll(() => stopReceiver?.())

  it.each(places)('$path', async ({ path, states, isNewOrganization, expectedErrors = /^$/ }) => {
    const organization = isNewOrganization ? await service.organization() : sample
    const viewport = { width, height: 740 }
    const work = async (page: Page) => {
      // A dialog asks before it closes if the check changed its fields.
      page.on('dialog', question => question.accept())
      for (const [state, reach] of Object.entries(states)) {
        await reach(page)
        await check(page, state)
      }
    }
    await open(organization, path, work, { expectedErrors, viewport, colorScheme })
  })
}

/**
 * Declares a test for each page of the console: in each of its states and in each view, axe-core finds no violation, and the page is not
 * wider than its window. The page comes to its next state in the last view.
 */
export function checkPages(views: readonly View[]): void {
  const show = async (page: Page, { width, colorScheme }: View) => {
    await page.setViewportSize({ width, height: 740 })
    await page.emulateMedia({ colorScheme })
  }
  testPages(views.at(-1)!, async (page, state) => {
    for (const view of views) {
      if (views.length > 1) await show(page, view)
      expect([state, view, await accessibilityFaults(page)]).toEqual([state, view, []])
      expect([state, view, await overflowOf(page)]).toEqual([state, view, 0])
    }
  })
}

/** Gives the import page a file with a column that is no field, and leaves that out. */
async function chooseSmallFile(page: Page): Promise<void> {
  const buffer = Buffer.from('external_id,email,city\nnew-1,a@example.org,Rome\nnew-2,nowhere,Rome\n')
  const file = { name: 'people.csv', mimeType: 'text/plain', buffer }
  await page.getByLabel(/Drop a CSV file/).setInputFiles(file)
  await button(page, 'Leave out the rest').click()
}
