/** Sets an entry as the newest one, and removes the oldest entry if the map then holds more than `maxSize`. */
export function setWithBound<K, V>(map: Map<K, V>, key: K, value: V, maxSize: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > maxSize) map.delete(map.keys().next().value as K)
}
