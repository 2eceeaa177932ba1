/** The lines of each icon on a square of 16 units. Fonts lack such characters, or draw them differently. */
const paths = {
  check: 'M3 8.5l3.2 3.2L13 4.8',
  close: 'M4 4l8 8M12 4l-8 8',
  down: 'M4 6l4 4 4-4',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  ascending: 'M8 13V3M4 7l4-4 4 4',
  descending: 'M8 3v10M4 9l4 4 4-4',
  sortable: 'M5 6l3-3 3 3M5 10l3 3 3-3',
}

/** A small drawing beside a text, or in a button with its own label. */
export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path
        d={paths[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth={name === 'more' ? 2.4 : 1.6}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  )
}
