import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { checkAccessibility } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { linksOf, storedAnswers } from '../../test/support/pages.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'

const service = useOwnService({ KITH_RATE_PAGES: '100000' })
const browser = useBrowser()
const organization = useSharedShop(service)
beforeAll(async () => {
  const { send } = organization
  const unbroken = 'Donaudampfschifffahrtsgesellschaftskapitänsmützenversand'
  for (const [path, body] of [
    [
      'consent-types',
      { key: 'news', name: 'News', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
    ],
    ['consent-types', { key: 'long', name: unbroken.repeat(3), description: unbroken, channels: [{ channel: 'sms' }] }],
    [
      'consent-types/2/texts',
      { language: 'en', text: 'I agree.\nAt any time, I may withdraw.', url: 'https://books.example/text' },
    ],
    ['consent-types/2/texts', { language: 'de', text: 'Ich bin einverstanden.' }],
  ] as const)
    expect((await send('POST', `/v1/schema/${path}`, body)).status).toBe(201)
  await send('PATCH', '/v1/schema/settings', {
    display_name: `Books and ${unbroken}`,
    accent_color: '#ffe14d',
    privacy_url: 'https://books.example/privacy',
    contact_email: 'privacy@books.example',
  })
})

let people = 0
async function createPerson(body: object = {}) {
  const external_id = `person-${++people}`
  const { id } = (await organization.send('POST', '/v1/people', { external_id, ...body })).body.data
  return { id, external_id, answers: () => storedAnswers(service, organization, id) }
}

const waiting = { consents: [{ consent_type_id: 2, channel: 'email', state: true }] }
const news = { consent_type_id: 2, channel: 'email' }

/** Opens every kind of page, and calls `check` on each. */
async function visitAll(page: Page, check: (name: string) => Promise<void>) {
  const person = await createPerson(waiting)
  const { preferences_url, unsubscribe_url, confirm_url } = await linksOf(organization, person.external_id, news)
  const visit = async (name: string, open: () => Promise<unknown>) => {
    await open()
    await check(name)
  }
  await visit('preferences', () => page.goto(preferences_url))
  await visit('saved', async () => {
    await page.getByLabel('SMS').first().check()
    await page.getByRole('button', { name: 'Save' }).click()
  })
  await visit('nothing changed', async () => {
    await page.getByRole('link', { name: 'Back to your preferences' }).click()
    await page.getByRole('button', { name: 'Save' }).click()
  })
  await visit('out of date', async () => {
    await page.goto(preferences_url)
    await page.locator('input[name=shown]').evaluate(field => field.setAttribute('value', ''))
    await page.getByRole('button', { name: 'Save' }).click()
  })
  await visit('confirmation', () => page.goto(confirm_url!))
  await visit('confirmed', () => page.getByRole('button', { name: 'Confirm' }).click())
  await visit('question', () => page.goto(unsubscribe_url))
  await visit('unsubscribed', () => page.getByRole('button', { name: 'Unsubscribe' }).click())
  await visit('nothing to confirm', () => page.goto(confirm_url!))
  await visit('not valid', () => page.goto(`${preferences_url.slice(0, -4)}AAAA`))
  return person
}

type Focused = { name: string; hasOutline: boolean }

/** A script for the page: the name of the element that has the focus, and whether its outline shows it. */
const readFocused = `{
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  const label = document.activeElement.labels?.[0] ?? document.activeElement
  ;({ name: label.textContent.trim(), hasOutline: outlineStyle === 'solid' && Number.parseFloat(outlineWidth) >= 2 })
}`

describe('the pages in a browser', { timeout: 120_000 }, () => {
  it.each([
    ['light', 360],
    ['dark', 360],
    ['light', 1_280],
    ['dark', 1_280],
  ] as const)('have no violations of WCAG 2.2 AA in %s at %d px', async (colorScheme, width) => {
    const options = { colorScheme, viewport: { width, height: 740 } }
    await browser.open(async page => {
      await visitAll(page, async name => {
        const { violations, passes } = await checkAccessibility(page)
        expect([name, violations]).toEqual([name, []])
        expect(passes).toBeGreaterThan(10)
      })
    }, options)
  })

  it('need no horizontal scrolling at 320 px, nor with text of twice the size', async () => {
    const isTooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    await browser.open(
      async page => {
        await visitAll(page, async name => {
          expect([name, await page.evaluate(isTooWide)]).toEqual([name, false])
          await page.evaluate(`document.documentElement.style.setProperty('font-size', '200%')`)
          expect([`${name}, large`, await page.evaluate(isTooWide)]).toEqual([`${name}, large`, false])
        })
      },
      { viewport: { width: 320, height: 600 } },
    )
  })

  it('request nothing from anywhere else, run no script and report no error', async () => {
    await browser.open(async (page, requested) => {
      const messages: string[] = []
      page.on('console', message => messages.push(message.text()))
      page.on('pageerror', error => messages.push(error.message))
      await visitAll(page, async () => {
        expect(await page.locator('script').count()).toBe(0)
      })
      expect(requested.filter(url => !/^\/[puc]\/[\w-]{64}$/.test(new URL(url).pathname))).toEqual([])
      expect([...new Set(requested.map(url => new URL(url).origin))]).toEqual([service.address])
      // A page for a refusal has a status that the browser reports.
      expect(messages.filter(message => !/status of 40[04]/.test(message))).toEqual([])
    })
  })

  it('work without scripts', async () => {
    const person = await createPerson(waiting)
    const { confirm_url, unsubscribe_url } = await linksOf(organization, person.external_id, news)
    await browser.open(
      async page => {
        await page.goto(confirm_url!)
        await page.getByRole('button', { name: 'Confirm' }).click()
        await page.goto(unsubscribe_url)
        await page.getByRole('button', { name: 'Unsubscribe' }).click()
      },
      { javaScriptEnabled: false },
    )
    expect((await person.answers()).map(({ state, evidence }) => [state, evidence?.method])).toEqual([
      [true, undefined],
      [true, 'double_opt_in'],
      [false, 'unsubscribe_link'],
    ])
  })

  it('can be used with the keyboard alone, and show the focus', async () => {
    const person = await createPerson()
    const { preferences_url } = await linksOf(organization, person.external_id)
    await browser.open(async page => {
      await page.goto(preferences_url)
      const focused = () => page.evaluate<Focused>(readFocused)
      const visited: Focused[] = []
      for (;;) {
        await page.keyboard.press('Tab')
        const element = await focused()
        visited.push(element)
        if (visited.filter(({ name }) => name === 'SMS').length === 2) await page.keyboard.press('Space')
        if (element.name === 'Save') break
      }
      expect(visited.map(({ name }) => name)).toEqual([
        'Email',
        'SMS',
        'More about News',
        'Email',
        'SMS',
        'SMS',
        'Save',
      ])
      expect(visited.filter(({ hasOutline }) => !hasOutline)).toEqual([])
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Your choice is saved' }).waitFor()
    })
    expect(await person.answers()).toMatchObject([{ consent_type_id: 2, channel: 'sms', state: true, actor: 'link' }])
  })

  it('show the texts in the language of the person, and mark texts in another one', async () => {
    const person = await createPerson({ language: 'de-CH' })
    const french = await createPerson({ language: 'fr' })
    await browser.open(async page => {
      await page.goto((await linksOf(organization, person.external_id)).preferences_url)
      expect(await page.locator('html').getAttribute('lang')).toBe('de')
      expect(await page.getByText('Ich bin einverstanden.').getAttribute('lang')).toBe('de')
      await page.goto((await linksOf(organization, french.external_id)).preferences_url)
      expect(await page.getByText('Ich bin einverstanden.').getAttribute('lang')).toBe('de')
      expect(await page.getByRole('button').textContent()).toBe('Enregistrer')
    })
  })

  it('keep the choice of the person after going back, and follow to the preferences after unsubscribing', async () => {
    const person = await createPerson({ consents: [{ consent_type_id: 1, channel: 'sms', state: true }] })
    const { unsubscribe_url } = await linksOf(organization, person.external_id, { consent_type_id: 1 })
    await browser.open(async page => {
      await page.goto(unsubscribe_url)
      await page.getByRole('button', { name: 'Unsubscribe' }).click()
      await page.getByRole('link', { name: 'See all your preferences' }).click()
      expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(0)
      await page.getByRole('group', { name: 'Marketing' }).getByLabel('SMS').check()
      await page.getByRole('button', { name: 'Save' }).click()
      // A reload while the page of the response is loading reloads neither.
      await page.getByRole('link', { name: 'Back to your preferences' }).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'Back to your preferences' }).click()
      expect(await page.getByRole('group', { name: 'Marketing' }).getByLabel('SMS').isChecked()).toBe(true)
    })
    expect((await person.answers()).filter(({ channel }) => channel === 'sms').map(({ state }) => state)).toEqual([
      true,
      false,
      true,
    ])
  })
})
