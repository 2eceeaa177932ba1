import type { Locator, Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { testPages } from '../../test/support/console-pages.ts'

const list = (page: Page) => page.getByRole('listbox')
// A dialog makes the page behind it inert.
const selects = (page: Page) =>
  page.getByRole('button').and(page.locator('[aria-haspopup=listbox]:not([tabindex="-1"]):not([inert] *)'))
// The browser itself suggests values for an input with a list.
const comboBoxes = (page: Page) => page.getByRole('combobox').and(page.locator('input:not([list]):not([inert] *)'))
/** Gives a field the focus. It is scrolled before, because a list closes when the page scrolls. */
async function focus(field: Locator): Promise<void> {
  await field.scrollIntoViewIfNeeded()
  await field.page().evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  await field.focus()
}
const hasFocus = (field: Locator) => expect.poll(() => field.evaluate(element => element.matches(':focus'))).toBe(true)

/** Opens a list, leaves it by Escape, chooses another option by the arrow keys, and the one before by typing its name. */
async function chooseInSelect(page: Page, field: Locator): Promise<void> {
  const text = () => field.innerText()
  const before = await text()
  await focus(field)
  await page.keyboard.press('ArrowDown')
  await list(page).waitFor()
  const options = await list(page).getByRole('option').and(page.locator(':not([aria-disabled=true])')).all()
  const names = await Promise.all(options.map(option => option.locator('[slot=label]').innerText()))
  await page.keyboard.press('Escape')
  await list(page).waitFor({ state: 'detached' })
  await hasFocus(field)
  expect(await text()).toBe(before)
  const other = names.at(-1) === before.trim() ? names[0]! : names.at(-1)!
  await page.keyboard.press('Enter')
  await list(page).waitFor()
  await page.keyboard.press(other === names[0] ? 'Home' : 'End')
  await page.keyboard.press('Enter')
  await list(page).waitFor({ state: 'detached' })
  await expect.poll(text).toContain(other)
  await hasFocus(field)
  if (!names.includes(before.trim()) || other === before.trim()) return
  await page.keyboard.press('Space')
  await list(page).locator('[role=option]:focus').waitFor()
  await page.keyboard.type(before.trim().slice(0, 20).split(':')[0]!)
  await page.keyboard.press('Enter')
  await list(page).waitFor({ state: 'detached' })
  await expect.poll(text).toContain(before.trim())
}

/** Narrows the options by typing, leaves them by Escape, and chooses by the arrow keys. */
async function chooseInComboBox(page: Page, field: Locator): Promise<void> {
  const before = await field.inputValue()
  await focus(field)
  await page.keyboard.press('ArrowDown')
  await list(page).waitFor()
  const names = await list(page).getByRole('option').allInnerTexts()
  await page.keyboard.press('Escape')
  await list(page).waitFor({ state: 'detached' })
  await hasFocus(field)
  expect(await field.inputValue()).toBe(before)
  const typed = names.at(-1)!.slice(0, 4)
  await page.keyboard.press('Control+A')
  await page.keyboard.type(typed)
  await list(page).waitFor()
  const narrowed = await list(page).getByRole('option').allInnerTexts()
  expect(narrowed).toContain(names.at(-1))
  await page.keyboard.press('Escape')
  await list(page).waitFor({ state: 'detached' })
  expect(await field.inputValue()).toBe(before)
  await hasFocus(field)
  // The arrow keys go to the last option, and Enter takes it.
  await page.keyboard.press('ArrowUp')
  await list(page).waitFor()
  const focused = page.locator('[role=option][data-focused]')
  const name = await focused.innerText()
  await page.keyboard.press('Enter')
  await expect.poll(() => field.inputValue()).toBe(name)
  await hasFocus(field)
}

const menus = (page: Page) => page.getByRole('button').and(page.locator('[aria-haspopup=menu]:not([inert] *)'))

/** Opens a menu, which is loaded only then, goes to its last action, and leaves it by Escape. */
async function openMenu(page: Page, field: Locator): Promise<void> {
  await focus(field)
  await page.keyboard.press('ArrowDown')
  await page.getByRole('menu').waitFor()
  const items = page.getByRole('menu').getByRole('menuitem').and(page.locator(':not([aria-disabled=true])'))
  if ((await items.count()) > 0) {
    await hasFocus(items.first())
    await page.keyboard.press('End')
    await hasFocus(items.last())
  }
  await page.keyboard.press('Escape')
  await page.getByRole('menu').waitFor({ state: 'detached' })
  await hasFocus(field)
}

describe('each list of choices and each menu is used by the keyboard alone', () => {
  testPages({ width: 1280, colorScheme: 'light' }, async (page, state) => {
    page.setDefaultTimeout(8_000)
    for (const [fields, choose] of [
      [selects, chooseInSelect],
      [comboBoxes, chooseInComboBox],
      [menus, openMenu],
    ] as const)
      for (let index = 0; index < (await fields(page).count()); index++) {
        const field = fields(page).nth(index)
        const name = await field.getAttribute('aria-label')
        await choose(page, field).catch(error => {
          throw new Error(`${state}, field ${index} ${name}: ${error.message}`, { cause: error })
        })
      }
  })
})
