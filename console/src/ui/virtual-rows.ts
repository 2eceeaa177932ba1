import { type RefObject, useEffect, useState } from 'react'

/** Rows that are drawn above and below those in sight. */
const overscan = 12

/** The rows of a scrolled element that are in sight, from `first` to `last`. All rows have one height. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, count: number, rowHeight: number) {
  const [[top, height], setSight] = useState([0, 0])
  useEffect(() => {
    const element = scroller.current!
    const read = () => setSight([element.scrollTop, element.clientHeight])
    read()
    const resized = new ResizeObserver(read)
    resized.observe(element)
    element.addEventListener('scroll', read, { passive: true })
    return () => {
      resized.disconnect()
      element.removeEventListener('scroll', read)
    }
  }, [scroller])
  const first = Math.max(0, Math.floor(top! / rowHeight) - overscan)
  return { first, last: Math.min(count, Math.ceil((top! + height!) / rowHeight) + overscan) - 1 }
}
