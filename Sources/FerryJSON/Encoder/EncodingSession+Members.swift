internal import CFerryJSON

/// The members of the innermost object: their keys, those that come twice, and their order.
extension EncodingSession {
    /// Begins a member of the innermost object; its value comes next.
    func beginMember(named name: String) {
        let depth = frames.count - 1
        let count = frames[depth].count
        if count > 0 { members[members.count - 1].end = output.count }
        separate(isFirst: count == 0)
        let begin = output.count
        output.append(string: name, escapingSlashes: escapesSlashes)
        noteMember(at: depth, Member(begin: begin, keyCount: output.count - begin, hash: hash(from: begin)))
        if sortsKeys { noteOrder(of: name, at: depth) }
        output.append(isPretty ? " : " : ":")
    }

    func noteMember(at depth: Int, _ new: Member) {
        var new = new
        let (word, bit) = (Int(new.hash & 7), UInt64(1) << (new.hash >> 3 & 63))
        if frames[depth].seen[word] & bit != 0, let replaced = lastMember(like: new, at: depth) {
            members[replaced].isReplaced = true
            new.replaced = replaced
            frames[depth].needsOrder = true
        }
        frames[depth].seen[word] |= bit
        frames[depth].count += 1
        members.append(new)
        if !largeObjects.isEmpty { largeObjects[depth]?[name(of: members.count - 1)] = members.count - 1 }
    }

    func noteOrder(of name: String, at depth: Int) {
        frames[depth].needsOrder = true
        if members[members.count - 1].keyCount != name.utf8.count + 2 { frames[depth].keysArePlain = false }
    }

    /// The hash of the key at the end of the text.
    func hash(from begin: Int) -> UInt64 {
        let count = output.count - begin - 2
        var head: UInt64 = 0
        var tail: UInt64 = 0
        if count >= 8 {
            memcpy(&head, output.bytes + begin + 1, 8)
            memcpy(&tail, output.bytes + begin + 1 + count - 8, 8)
        } else {
            memcpy(&head, output.bytes + begin + 1, count)
        }
        let product = (head ^ tail &* 31 ^ UInt64(count)) &* 0x9e37_79b9_7f4a_7c15
        return product ^ product >> 32
    }

    /// The earlier member with the same key, if there is one. The last value counts.
    func lastMember(like new: Member, at depth: Int) -> Int? {
        let first = frames[depth].firstMember
        // Only types with their own keys can have so many members; they get a dictionary.
        if members.count - first > 64 {
            if largeObjects[depth] == nil {
                var known: [String: Int] = [:]
                for member in first..<members.count where !members[member].isReplaced {
                    known[name(of: member)] = member
                }
                largeObjects[depth] = known
            }
            return largeObjects[depth]?[name(new)]
        }
        return (first..<members.count).first { place in
            let other = members[place]
            return other.hash == new.hash && !other.isReplaced && other.keyCount == new.keyCount
                && memcmp(output.bytes + other.begin, output.bytes + new.begin, new.keyCount) == 0
        }
    }

    func name(of member: Int) -> String { name(members[member]) }

    /// The key of a member, unescaped.
    func name(_ member: Member) -> String {
        let text = UnsafeRawBufferPointer(start: output.bytes + member.begin, count: member.keyCount)
        return (try? JSON(parsing: text, spare: 0).string) ?? ""
    }

    func isBefore(_ a: Int, _ b: Int) -> Bool {
        let (a, b) = (members[a], members[b])
        // Leave out the quotes, because nothing after them is compared.
        let (aCount, bCount) = (a.keyCount - 2, b.keyCount - 2)
        let order = memcmp(output.bytes + a.begin + 1, output.bytes + b.begin + 1, min(aCount, bCount))
        return order != 0 ? order < 0 : aCount < bCount
    }

    /// Whether the members at these places, or all in their order, are sorted by key.
    func isInOrder(_ order: [Int]?, from first: Int, _ count: Int) -> Bool {
        var place = 1
        while place < count {
            let (a, b) = order.map { ($0[place - 1], $0[place]) } ?? (place - 1, place)
            guard isBefore(first + a, first + b) else { return false }
            place += 1
        }
        return true
    }

    /// The members of the innermost object, sorted by key, from its first one.
    func sortedMembers(from first: Int) -> [Int] {
        let count = members.count - first
        let live = (0..<count).filter { !members[first + $0].isReplaced }
        guard frames[frames.count - 1].keysArePlain else {
            let names = live.map { Array(name(of: first + $0).utf8) }
            return live.indices.sorted { names[$0].lexicographicallyPrecedes(names[$1]) }.map { live[$0] }
        }
        let order = live.sorted { isBefore(first + $0, first + $1) }
        if live.count == count, count < lastOrders.count { lastOrders[count] = order }
        return order
    }

    /// Rewrites the members of the innermost object, sorted and without replaced ones.
    func putInOrder() {
        let first = frames[frames.count - 1].firstMember
        let count = members.count - first
        guard sortsKeys else {
            return write((0..<count).filter { !members[first + $0].isReplaced }, from: first)
        }
        if frames[frames.count - 1].keysArePlain {
            // If all keys differ, a replaced member is out of order with its replacement.
            if isInOrder(nil, from: first, count) { return }
            if count < lastOrders.count, lastOrders[count].count == count,
                isInOrder(lastOrders[count], from: first, count)
            {
                return write(lastOrders[count], from: first)
            }
        }
        write(sortedMembers(from: first), from: first)
    }

    func write(_ order: [Int], from first: Int) {
        sorted.removeLast(sorted.count)
        for place in order {
            if sorted.count > 0 {
                sorted.append(UInt8(ascii: ","))
                if isPretty { sorted.append(lineBreakAtLevel: level) }
            }
            let member = members[first + place]
            sorted.append(
                UnsafeBufferPointer(start: output.bytes + member.begin, count: member.end - member.begin))
        }
        output.replace(from: members[first].begin, with: sorted)
    }

    func convert(_ key: some CodingKey) -> String {
        let name = key.stringValue
        switch options.keyEncodingStrategy {
        case .useDefaultKeys: return name
        case .convertToSnakeCase:
            if let known = snakeNames[name] { return known }
            let converted = SnakeCase.snakeCase(of: name)
            snakeNames[name] = converted
            return converted
        case .custom(let convert): return convert(codingPath + [key]).stringValue
        }
    }
}

// MARK: - Arrays and dictionaries without containers

extension EncodingSession {
    func array<Element>(_ elements: [Element], _ write: (Element) throws -> Void) throws {
        _ = pushFrame()
        open(.array)
        do {
            for element in elements {
                let depth = frames.count - 1
                separate(isFirst: frames[depth].count == 0)
                frames[depth].count += 1
                try write(element)
            }
        } catch {
            popFrame()
            throw error
        }
        finishFrame()
    }

    /// Encodes a dictionary. Its keys are data, which no strategy converts, and are distinct.
    func dictionary<Value>(_ values: [String: Value], _ write: (String, Value) throws -> Void) throws {
        _ = pushFrame()
        open(.object)
        do {
            for (key, value) in values {
                let depth = frames.count - 1
                if frames[depth].count > 0 { members[members.count - 1].end = output.count }
                separate(isFirst: frames[depth].count == 0)
                frames[depth].count += 1
                let begin = output.count
                output.append(string: key, escapingSlashes: escapesSlashes)
                members.append(Member(begin: begin, keyCount: output.count - begin, hash: 0))
                if sortsKeys { noteOrder(of: key, at: depth) }
                output.append(isPretty ? " : " : ":")
                try write(key, value)
            }
        } catch {
            popFrame()
            throw error
        }
        finishFrame()
    }
}
