import { describe, expect, it } from 'vitest'
import { checkAccessibility } from '../../test/support/accessibility.ts'
import { news, useLinkPages, waiting } from '../../test/support/link-pages.ts'
import { linksOf } from '../../test/support/pages.ts'

const { browser, organization, createPerson, visitAll } = useLinkPages()

type Focused = { name: string; hasOutline: boolean }

/** A script for the page: the name of the element that has the focus, and whether its outline shows it. */
const readFocused = `{
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  const label = document.activeElement.labels?.[0] ?? document.activeElement
  ;({ name: label.textContent.trim(), hasOutline: outlineStyle === 'solid' && Number.parseFloat(outlineWidth) >= 2 })
}`

describe('the pages in a browser', () => {
  it('have no violations of WCAG 2.2 AA, run no script, request nothing from anywhere else and report no error', async () => {
    await browser.open(async (page, requested) => {
      const messages: string[] = []
      page.on('console', message => messages.push(message.text()))
      page.on('pageerror', error => messages.push(error.message))
      await visitAll(page, async name => {
        expect([name, await page.locator('script').count()]).toEqual([name, 0])
        const { violations, passes } = await checkAccessibility(page)
        expect([name, violations]).toEqual([name, []])
        expect(passes).toBeGreaterThan(10)
      })
      expect(requested.filter(url => !/^\/[puc]\/[\w-]{64}$/.test(new URL(url).pathname))).toEqual([])
      expect(new Set(requested.map(url => new URL(url).origin)).size).toBe(1)
      // The browser reports the status of a page for a refusal.
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
        await page.getByRole('heading', { name: 'Thank you, it is confirmed' }).waitFor()
        await page.goto(unsubscribe_url)
        await page.getByRole('button', { name: 'Unsubscribe' }).click()
        await page.getByRole('heading', { name: 'You are unsubscribed' }).waitFor()
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
      await page.getByRole('group', { name: 'Marketing' }).waitFor()
      expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(0)
      await page.getByRole('group', { name: 'Marketing' }).getByLabel('SMS').check()
      await page.getByRole('button', { name: 'Save' }).click()
      // A reload while the page of the response is loading has no effect, so the test waits for that page.
      await page.getByRole('link', { name: 'Back to your preferences' }).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'Back to your preferences' }).click()
      await page.getByRole('button', { name: 'Save' }).waitFor()
      expect(await page.getByRole('group', { name: 'Marketing' }).getByLabel('SMS').isChecked()).toBe(true)
    })
    expect((await person.answers()).filter(({ channel }) => channel === 'sms').map(({ state }) => state)).toEqual([
      true,
      false,
      true,
    ])
  })
})
