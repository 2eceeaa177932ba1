const announcer = '[data-live-announcer]'

/**
 * Turns each announcement of React Aria that names a button by its id into text. An announcement stays for seven
 * seconds, and would lose its name when the button disappears.
 */
export function nameAnnouncements(): void {
  const named = new MutationObserver(() => {
    for (const image of document.querySelectorAll(`${announcer} [aria-labelledby]`)) {
      const ids = image.getAttribute('aria-labelledby')!.split(' ')
      image.removeAttribute('role')
      image.removeAttribute('aria-labelledby')
      image.textContent = ids.map(nameOf).join(' ').trim()
    }
  })
  // React Aria adds its announcer to the body with the first announcement.
  new MutationObserver(() => {
    for (const place of document.querySelectorAll(announcer)) named.observe(place, { childList: true, subtree: true })
  }).observe(document.body, { childList: true })
}

function nameOf(id: string): string {
  const element = document.getElementById(id)
  return element?.getAttribute('aria-label') ?? element?.textContent ?? ''
}
