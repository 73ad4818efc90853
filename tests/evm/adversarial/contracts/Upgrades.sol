// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Erc20} from "./Standard.sol";

// Contracts whose code, name or standard changes.

/// Changes its name, symbol and decimals without a log.
contract Renamed20 is Erc20("Old Name", "OLD", 18) {
    function rename() external {
        (name, symbol, decimals) = ("New Name", "NEW", 9);
    }
}

/// What proxies delegate to: constants in code, balances in the proxy's storage.
abstract contract Implementation {
    event Transfer(address indexed from, address indexed to, uint256 value);

    mapping(address => uint256) internal held;

    function balanceOf(address holder) external view virtual returns (uint256) {
        return held[holder];
    }

    function mint(address to, uint256 value) external {
        held[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        held[msg.sender] -= value;
        held[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

contract Before20 is Implementation {
    string public constant name = "Before Upgrade";
    string public constant symbol = "BEF";
    uint8 public constant decimals = 18;
}

contract After20 is Implementation {
    string public constant name = "After Upgrade";
    string public constant symbol = "AFT";
    uint8 public constant decimals = 6;

    function balanceOf(address holder) external view override returns (uint256) {
        return held[holder] * 3;
    }
}

abstract contract Proxy {
    function slot() internal pure virtual returns (bytes32);

    function store(address implementation) internal {
        bytes32 at = slot();
        assembly {
            sstore(at, implementation)
        }
    }

    fallback() external payable {
        bytes32 at = slot();
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), sload(at), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}

/// EIP-1967, and an upgrade logs Upgraded.
contract Proxy1967 is Proxy {
    event Upgraded(address indexed implementation);

    constructor(address implementation) {
        upgradeTo(implementation);
    }

    function slot() internal pure override returns (bytes32) {
        return bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);
    }

    function upgradeTo(address implementation) public {
        store(implementation);
        emit Upgraded(implementation);
    }
}

/// EIP-1822, and an upgrade logs nothing.
contract Proxy1822 is Proxy {
    constructor(address implementation) {
        store(implementation);
    }

    function slot() internal pure override returns (bytes32) {
        return keccak256("PROXIABLE");
    }

    function upgradeTo(address implementation) external {
        store(implementation);
    }
}

/// Deploys the code of `template` with CREATE2: always the same init code, so always the same address.
contract Factory {
    address public template;

    function deploy(address template_) external {
        template = template_;
        new Copy{salt: 0}();
    }
}

contract Copy {
    constructor() {
        bytes memory code = Factory(msg.sender).template().code;
        assembly {
            return(add(code, 0x20), mload(code))
        }
    }
}

contract First20 is Implementation {
    string public constant name = "First Life";
    string public constant symbol = "LIFE1";
    uint8 public constant decimals = 12;

    function destroy() external {
        selfdestruct(payable(msg.sender));
    }
}

contract Second721 {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    string public constant name = "Second Life";
    string public constant symbol = "LIFE2";
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd;
    }

    function mint(address to, uint256 tokenId) external {
        ownerOf[tokenId] = to;
        balanceOf[to]++;
        emit Transfer(address(0), to, tokenId);
    }
}
